// Values over time, extended by every event.

// Rows that a page keeps; the oldest are dropped first, some at a time: to drop one moves all.
const ROWS_MAX = 8000;
const ROWS_DROPPED = 200;
// Values by name; those of further names, such as of processes that come and go, are left out.
const COLUMNS_MAX = 300;
// A longer time without a row interrupts the lines.
const GAP_S = 3;

export class Rows {
  readonly places: number[] = [];
  private readonly columns = new Map<string, (number | null)[]>();
  private readonly nonZero = new Set<string>();

  // Appends a row at `at` with values by name; earlier rows have no value for a new name.
  push(at: number, values: Iterable<[string, number | null]>): void {
    const last = this.places[this.places.length - 1];
    if (last !== undefined) {
      // A repeated or late row would make lines run backwards.
      if (at <= last) return;
      if (at - last > GAP_S) this.row(last + 0.001, new Map());
    }
    this.row(at, new Map(values));
    if (this.places.length > ROWS_MAX) this.forget(ROWS_DROPPED);
  }

  // Names in the order of their first row.
  names(): string[] {
    return [...this.columns.keys()];
  }

  // True when any value of the column was not zero.
  hasNonZero(name: string): boolean {
    return this.nonZero.has(name);
  }

  column(name: string): (number | null)[] {
    return this.columns.get(name) ?? new Array<null>(this.places.length).fill(null);
  }

  private row(at: number, values: Map<string, number | null>): void {
    for (const [name, value] of values) {
      if (!this.columns.has(name) && this.columns.size < COLUMNS_MAX) {
        this.columns.set(name, new Array<null>(this.places.length).fill(null));
      }
      if (value !== null && value !== 0 && this.columns.has(name)) this.nonZero.add(name);
    }
    this.places.push(at);
    for (const [name, column] of this.columns) column.push(values.get(name) ?? null);
  }

  private forget(count: number): void {
    this.places.splice(0, count);
    for (const [name, column] of this.columns) {
      column.splice(0, count);
      if (column.some((value) => value !== null)) continue;
      // Of something that is no more.
      this.columns.delete(name);
      this.nonZero.delete(name);
    }
  }
}

// Intervals of consecutive rows with one name: the phases of runs.
export class Intervals {
  readonly all: [number, number, string][] = [];

  push(from: number, to: number, name: string): void {
    const last = this.all[this.all.length - 1];
    if (last !== undefined && last[2] === name && from - last[1] < GAP_S) last[1] = to;
    else this.all.push([from, to, name]);
    if (this.all.length > ROWS_MAX) this.all.shift();
  }
}
