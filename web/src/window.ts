// The span of time that all charts of a page show.

export type Range = [number, number] | null;

export class TimeWindow {
  private chosen: Range = null;
  private readonly listeners = new Set<(range: Range) => void>();

  get range(): Range {
    return this.chosen;
  }

  // Chooses a span; null: the whole time.
  select(range: Range): void {
    if (isSame(range, this.chosen)) return;
    this.chosen = range;
    for (const listener of [...this.listeners]) listener(range);
  }

  // Returns the function that ends the subscription.
  subscribe(listener: (range: Range) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

function isSame(a: Range, b: Range): boolean {
  if (a === null || b === null) return a === b;
  return Math.abs(a[0] - b[0]) < 1e-6 && Math.abs(a[1] - b[1]) < 1e-6;
}
