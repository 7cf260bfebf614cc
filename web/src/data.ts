// What a page says about its charts; `data.rs` of the report writes it.

export type Unit =
  | "number" | "seconds" | "rate" | "latency" | "percent" | "bytes" | "bytes_per_s" | "nines";

export interface AxisData {
  title: string;
  unit: Unit;
  log: boolean;
  from: number;
  to: number;
}

export interface LineData {
  name: string;
  // Classes of the style sheet, the colour's first.
  class: string;
  marker: "" | "dot" | "triangle" | "hollow" | "cross";
  published: boolean;
  places: number;
  values: (number | null)[];
}

export interface MarkData {
  x: number | null;
  y: number;
  name: string;
  colour: number;
}

export interface ChartData {
  title: string;
  wide: boolean;
  stacked: boolean;
  x: AxisData;
  y: AxisData;
  lines: LineData[];
  bands: [number, number, string][];
  marks: MarkData[];
}

export interface PageData {
  places: number[][];
  charts: ChartData[];
}

// A value that is absent, or a place that another line has and this one has not.
export type Value = number | null | undefined;

// The lines of a chart over the places of all of them: rows of `[places, line, line, ...]`.
// Places that a line does not know are undefined there, which does not interrupt it.
export function aligned(chart: ChartData, places: number[][]): [number[], ...Value[][]] {
  const used = new Set(chart.lines.map((line) => line.places));
  if (used.size === 1) {
    const shared = places[chart.lines[0]!.places] ?? [];
    return [shared, ...chart.lines.map((line) => line.values)];
  }
  const all = new Set<number>();
  for (const number of used) {
    for (const at of places[number] ?? []) all.add(at);
  }
  const axis = [...all].sort((a, b) => a - b);
  const position = new Map(axis.map((at, index) => [at, index]));
  const columns = chart.lines.map((line) => {
    const column: Value[] = new Array<Value>(axis.length).fill(undefined);
    (places[line.places] ?? []).forEach((at, index) => {
      column[position.get(at)!] = line.values[index] ?? null;
    });
    return column;
  });
  return [axis, ...columns];
}

// Sums of a line and all lines before it that are shown, for areas upon each other.
export function stacked(columns: Value[][], shown: boolean[]): Value[][] {
  const sums: number[] = [];
  return columns.map((column, line) =>
    column.map((value, index) => {
      if (!shown[line] || value === null || value === undefined) return value;
      sums[index] = (sums[index] ?? 0) + value;
      return sums[index];
    }));
}
