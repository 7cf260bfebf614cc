// Values over time that grow as news comes.

// Rows that a page keeps; the oldest go first.
const ROWS_MAX = 8000;
// Without a row for so long, lines are interrupted.
const GAP_S = 3;

export class Growing {
  readonly places: number[] = [];
  private readonly columns = new Map<string, (number | null)[]>();
  private readonly moved = new Set<string>();

  // A row at `at`, with values by name. Names that are new have had no values before.
  push(at: number, values: Iterable<[string, number | null]>): void {
    const last = this.places[this.places.length - 1];
    if (last !== undefined) {
      // What comes twice, or late, would turn lines back.
      if (at <= last) return;
      if (at - last > GAP_S) this.row(last + 0.001, new Map());
    }
    this.row(at, new Map(values));
    if (this.places.length > ROWS_MAX) this.forget(this.places.length - ROWS_MAX);
  }

  // Names, in the order in which they came.
  names(): string[] {
    return [...this.columns.keys()];
  }

  // Whether it ever had a value other than zero.
  hasMoved(name: string): boolean {
    return this.moved.has(name);
  }

  column(name: string): (number | null)[] {
    return this.columns.get(name) ?? new Array<null>(this.places.length).fill(null);
  }

  private row(at: number, values: Map<string, number | null>): void {
    for (const [name, value] of values) {
      if (value !== null && value !== 0) this.moved.add(name);
      if (!this.columns.has(name)) {
        this.columns.set(name, new Array<null>(this.places.length).fill(null));
      }
    }
    this.places.push(at);
    for (const [name, column] of this.columns) column.push(values.get(name) ?? null);
  }

  private forget(count: number): void {
    this.places.splice(0, count);
    for (const column of this.columns.values()) column.splice(0, count);
  }
}

// The stretches in which rows of a kind followed each other: the phases of runs.
export class Stretches {
  readonly all: [number, number, string][] = [];

  push(from: number, to: number, name: string): void {
    const last = this.all[this.all.length - 1];
    if (last !== undefined && last[2] === name && from - last[1] < GAP_S) last[1] = to;
    else this.all.push([from, to, name]);
    if (this.all.length > ROWS_MAX) this.all.shift();
  }
}
