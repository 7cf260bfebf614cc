// Timed actions: what has come of each, and their marks in charts over time.

import type { DeedNews } from "./news";

// Actions that a page keeps; the oldest go first.
const DEEDS_MAX = 1000;
// Share of the time axis that the mark of a moment takes: enough to be seen.
const MARK_SHARE = 0.003;

export class Deeds {
  private readonly known = new Map<string, DeedNews>();

  // The newest about an action replaces what was known of it.
  take(deed: DeedNews): void {
    this.known.set(`${deed.run} ${deed.number}`, deed);
    while (this.known.size > DEEDS_MAX) {
      const oldest = this.known.keys().next();
      if (oldest.done === true) return;
      this.known.delete(oldest.value);
    }
  }

  // The newest first.
  all(): DeedNews[] {
    return [...this.known.values()].sort((a, b) => b.at_s - a.at_s || b.number - a.number);
  }

  // Where they are on a time axis.
  bands(from: number, to: number): [number, number, string][] {
    const least = (to - from) * MARK_SHARE;
    const marks = this.all().reverse();
    return marks.map(({ at_s, length_s, kind }) =>
      [at_s, Math.min(at_s + Math.max(length_s ?? 0, least), to), kind]);
  }
}
