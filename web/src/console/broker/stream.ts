// A stream of the broker that is followed once: unlike an EventSource it says why it is refused,
// and does not begin again by itself.

import { ApiError, endpoint, failureOf } from "../api";

export async function follow<T>(
  pieces: string[],
  query: Record<string, string>,
  signal: AbortSignal,
  take: (item: T) => void,
): Promise<void> {
  const address = endpoint(["broker", ...pieces], new URLSearchParams(query));
  const answer = await fetch(address, { credentials: "same-origin", signal }).catch(
    (error: unknown) => {
      throw signal.aborted ? error : new ApiError("", 0);
    },
  );
  if (!answer.ok) throw failureOf(answer.status, await answer.text());
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines)
      if (line.startsWith("data: ")) take(JSON.parse(line.slice("data: ".length)) as T);
  }
}
