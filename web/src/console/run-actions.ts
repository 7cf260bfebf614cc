// What can be done with a run, from lists and from its own page.

import { send } from "./api";
import { wordsOf } from "./i18n";
import { fromRequest, toQuery } from "./new/draft";
import { keep } from "./new/uploads";
import { complain, say } from "./parts/toast";
import { navigate, runAddress } from "./router";
import { settings } from "./settings";
import { size } from "./show";
import type { Draft, Removed, Row, Started } from "./types";

function words() {
  return wordsOf(settings.get().language);
}

// Changes tags, star, note or baseline; null when that failed.
export async function annotate(
  id: string,
  part: Partial<Pick<Row, "tags" | "starred" | "note" | "baseline">>,
): Promise<Row | null> {
  try {
    return await send<Row>("PATCH", ["runs", id], part);
  } catch (error) {
    complain(error);
    return null;
  }
}

// Moves runs to the trash; `after` follows, and again when the step is taken back.
export async function remove(ids: string[], after: () => void): Promise<void> {
  const moved: string[] = [];
  try {
    for (const id of ids) {
      await send("DELETE", ["runs", id]);
      moved.push(id);
    }
  } catch (error) {
    complain(error);
  }
  after();
  if (moved.length === 0) return;
  say(words().records.removed(moved.length), () => {
    void restore(moved).then(after);
  });
}

// Takes runs out of the trash.
export async function restore(ids: string[]): Promise<void> {
  try {
    for (const id of ids) await send("POST", ["runs", id, "restore"]);
    say(words().records.restored);
  } catch (error) {
    complain(error);
  }
}

// Removes a run of the trash permanently, or all of them.
export async function purge(id: string | null): Promise<void> {
  try {
    const { removed, bytes } = await send<Removed>("DELETE", id === null ? ["trash"] : ["trash", id]);
    say(words().trash.purged(removed, bytes === null ? null : size(bytes)));
  } catch (error) {
    complain(error);
  }
}

// Starts the same test again and shows it.
export async function repeat(id: string): Promise<void> {
  try {
    const started = await send<Started>("POST", ["runs", id, "repeat"]);
    navigate(runAddress(started.id));
    say(words().run.repeated);
  } catch (error) {
    complain(error);
  }
}

// Opens the form with the request of a run, to be changed.
export async function change(id: string): Promise<void> {
  try {
    const draft = await send<Draft>("POST", ["runs", id, "draft"]);
    for (const upload of draft.uploads) keep({ ...upload, size: upload.bytes ?? 0 });
    const parts = toQuery(fromRequest(draft.request));
    parts.set("step", "2");
    navigate(`/new?${parts}`);
    if (draft.left_out.length > 0) say(words().run.leftOut(draft.left_out.join(", ")));
  } catch (error) {
    complain(error);
  }
}

export async function stop(id: string): Promise<void> {
  try {
    await send("POST", ["runs", id, "stop"]);
    say(words().run.stopping);
  } catch (error) {
    complain(error);
  }
}

export async function cancel(id: string, after: () => void): Promise<void> {
  try {
    await send("POST", ["runs", id, "cancel"]);
    say(words().run.canceled);
  } catch (error) {
    complain(error);
  }
  after();
}

// Tags from a text with commas between them, each once.
export function tagsOf(text: string): string[] {
  const tags = text
    .split(/[,，]/)
    .map((tag) => tag.trim())
    .filter((tag) => tag !== "");
  return [...new Set(tags)];
}
