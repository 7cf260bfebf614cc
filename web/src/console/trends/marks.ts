// Change points of a trend, and the units of its figures.

import type { TrendFigure, Trends } from "../types";

export interface Mark {
  index: number;
  // Change of the median of the points from here on against that of the points before, in percent.
  percent: number | null;
}

export function median(values: number[]): number | null {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

export function marksOf({ points, changes }: Trends): Mark[] {
  const at = [...new Set(changes)]
    .filter((index) => index > 0 && index < points.length)
    .sort((a, b) => a - b);
  const valuesOf = (from: number, to: number) =>
    points.slice(from, to).flatMap(({ value }) => (value === null ? [] : [value]));
  return at.map((index, number) => {
    const before = median(valuesOf(at[number - 1] ?? 0, index));
    const after = median(valuesOf(index, at[number + 1] ?? points.length));
    const known = before !== null && after !== null && before !== 0;
    return { index, percent: known ? (after / before - 1) * 100 : null };
  });
}

export function unitOf(figure: TrendFigure): "us" | "per_s" | "percent" {
  switch (figure) {
    case "p99":
      return "us";
    case "achieved_tps":
    case "cpu_75_tps":
      return "per_s";
    case "cpu_percent":
    case "loss_percent":
      return "percent";
  }
}
