// The stored runs of the mock: ten thousand, filtered, sorted and paged as the server does it.

import type { Page, Removed, Row, Trash } from "../../src/console/types";
import { LADDER, QUEUED, RUNNING, going, row } from "./data";

// Whether something runs, and what.
export type Busy = boolean | "ladder";

export class Records {
  private rows: Row[];
  private trash = new Map<string, Row & { deleted: string }>();

  constructor(count: number, busy: Busy) {
    const past = Array.from({ length: count }, (_, index) => row(index));
    const running = going(busy === "ladder" ? LADDER : RUNNING, Date.now());
    this.rows = busy === false ? past : [...QUEUED, running, ...past];
  }

  find(id: string): Row | undefined {
    return this.rows.find((known) => known.id === id);
  }

  add(added: Row): void {
    this.rows.unshift(added);
  }

  change(id: string, part: Partial<Row>): Row | undefined {
    const index = this.rows.findIndex((known) => known.id === id);
    if (index < 0) return undefined;
    this.rows[index] = { ...this.rows[index]!, ...part };
    return this.rows[index];
  }

  remove(id: string): boolean {
    const found = this.find(id);
    if (found === undefined) return false;
    this.trash.set(id, { ...found, deleted: new Date().toISOString() });
    this.rows = this.rows.filter((known) => known !== found);
    return true;
  }

  restore(id: string): boolean {
    const found = this.trash.get(id);
    if (found === undefined) return false;
    this.trash.delete(id);
    this.rows.unshift(found);
    return true;
  }

  trashed(): Trash {
    const rows = [...this.trash.values()].reverse().map((row) => ({ ...row, bytes: 1_234_567 }));
    return { rows, total: rows.length, bytes: 1_234_567 * rows.length };
  }

  // Removes one run of the trash, or all.
  purge(id: string | undefined): Removed | null {
    const ids = id === undefined ? [...this.trash.keys()] : [id];
    const removed = ids.filter((one) => this.trash.delete(one)).length;
    return id !== undefined && removed === 0 ? null : { removed, bytes: 1_234_567 * removed };
  }

  of(state: Row["state"]): Row[] {
    return this.rows.filter((known) => known.state === state);
  }

  page(query: URLSearchParams): Page {
    const q = (query.get("q") ?? "").toLowerCase();
    const wanted = (name: string) =>
      (query.get(name) ?? "").split(",").filter((part) => part !== "");
    const [states, verdicts] = [wanted("state"), wanted("verdict")];
    const [scenario, tag] = [query.get("scenario") ?? "", query.get("tag") ?? ""];
    const found = this.rows.filter(
      (known) =>
        (q === "" ||
          [known.name, known.scenario, known.target, known.note, ...known.tags]
            .join(" ")
            .toLowerCase()
            .includes(q)) &&
        (states.length === 0 || states.includes(known.state)) &&
        (verdicts.length === 0 || verdicts.includes(known.verdict ?? "")) &&
        (scenario === "" || known.scenario === scenario) &&
        (tag === "" || known.tags.includes(tag)) &&
        (query.get("starred") !== "1" || known.starred) &&
        (query.get("baseline") !== "1" || known.baseline === true),
    );
    const sort = query.get("sort") ?? "-started";
    const key = sort.replace(/^-/, "") as keyof Row;
    const sign = sort.startsWith("-") ? -1 : 1;
    found.sort((a, b) => {
      const [left, right] = [a[key], b[key]];
      if (left == null || right == null) return left == null ? (right == null ? 0 : 1) : -1;
      return sign * (left < right ? -1 : left > right ? 1 : 0);
    });
    const from = Number(query.get("cursor") ?? "0");
    const limit = Number(query.get("limit") ?? "50");
    const rows = found.slice(from, from + limit);
    const next = from + limit < found.length ? String(from + limit) : null;
    const facets = {
      scenarios: [...new Set(this.rows.map((known) => known.scenario))].sort(),
      tags: [...new Set(this.rows.flatMap((known) => known.tags))].sort(),
    };
    return { rows, next, total: found.length, ...(from === 0 ? { facets } : {}) };
  }
}
