// Chart data of a page, as `crates/report/src/chart_data.rs` serialises it.

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
  // Style sheet classes, the colour first.
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

// `null`: no value. `undefined`: the line has no such place, but another line of the chart has.
export type Value = number | null | undefined;

// The lines of a chart over the union of their places: `[places, line, line, ...]`. Places that a
// line lacks are `undefined`, which does not interrupt it.
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

// For stacked areas: the sum of each line and all shown lines before it.
export function stacked(columns: Value[][], shown: boolean[]): Value[][] {
  const sums: number[] = [];
  return columns.map((column, line) =>
    column.map((value, index) => {
      if (!shown[line] || value === null || value === undefined) return value;
      sums[index] = (sums[index] ?? 0) + value;
      return sums[index];
    }));
}
