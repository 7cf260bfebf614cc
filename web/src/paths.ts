// Paths of lines: drawn by piece, so that nothing reaches into a gap. uPlot draws across gaps and
// clips, which leaves the ends of steep strokes standing at the edges of a gap.

import type uPlot from "uplot";

import type { Value } from "./data";

// The indices of the values between two gaps, piece by piece, from `from` to `to`. `null` is a
// gap; `undefined` is no place of this line and interrupts nothing.
export function pieces(values: ArrayLike<Value>, from: number, to: number): number[][] {
  const all: number[][] = [];
  let piece: number[] = [];
  for (let index = from; index <= to; index += 1) {
    const value = values[index];
    if (value === undefined) continue;
    if (value === null) {
      if (piece.length > 0) all.push(piece);
      piece = [];
      continue;
    }
    piece.push(index);
  }
  if (piece.length > 0) all.push(piece);
  return all;
}

// Draws a series; `filled` down to the axis.
export function drawn(filled: boolean): uPlot.Series.PathBuilder {
  return (u, series, from, to) => {
    const [xs, ys] = [u.data[0]!, u.data[series]! as ArrayLike<Value>];
    const [stroke, fill] = [new Path2D(), new Path2D()];
    const bottom = u.valToPos(u.scales["y"]!.min ?? 0, "y", true);
    for (const piece of pieces(ys, from, to)) {
      const points = piece.map((index): [number, number] => [
        u.valToPos(xs[index]!, "x", true), u.valToPos(ys[index]!, "y", true),
      ]);
      points.forEach(([x, y], index) => (index > 0 ? stroke.lineTo(x, y) : stroke.moveTo(x, y)));
      if (!filled) continue;
      fill.moveTo(points[0]![0], bottom);
      for (const [x, y] of points) fill.lineTo(x, y);
      fill.lineTo(points[points.length - 1]![0], bottom);
      fill.closePath();
    }
    return filled ? { stroke, fill } : { stroke };
  };
}
