// Timed actions: the latest state of each, and their marks in charts over time.

import type { ActionNews } from "./news";

// Actions that a page keeps; the oldest are dropped first.
const ACTIONS_MAX = 1000;
// Share of the time axis that an action without a duration takes: enough to be visible.
const MARK_SHARE = 0.003;

export class Actions {
  private readonly known = new Map<string, ActionNews>();

  // Replaces the previous state of the action.
  update(action: ActionNews): void {
    this.known.set(`${action.run} ${action.number}`, action);
    while (this.known.size > ACTIONS_MAX) {
      const oldest = this.known.keys().next();
      if (oldest.done === true) return;
      this.known.delete(oldest.value);
    }
  }

  // All actions, latest first.
  all(): ActionNews[] {
    return [...this.known.values()].sort((a, b) => b.at_s - a.at_s || b.number - a.number);
  }

  // Their intervals on a time axis.
  bands(from: number, to: number): [number, number, string][] {
    const width = (to - from) * MARK_SHARE;
    const marks = this.all().reverse();
    return marks.map(({ at_s, length_s, kind }) =>
      [at_s, Math.min(at_s + Math.max(length_s ?? 0, width), to), kind]);
  }
}
