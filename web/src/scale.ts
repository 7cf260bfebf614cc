// Ticks and ranges of axes.

import type { Unit } from "./data";

// A round step that divides a span into at most `parts`: 1, 2 or 5 times a power of ten; for bytes
// a power of two.
export function step(span: number, unit: Unit, parts: number): number {
  if (!(span > 0)) return 1;
  if ((unit === "bytes" || unit === "bytes_per_s") && span > parts) {
    return 2 ** Math.ceil(Math.log2(span / parts));
  }
  const magnitude = 10 ** Math.floor(Math.log10(span / parts));
  for (const factor of [1, 2, 5]) {
    if (span / (factor * magnitude) <= parts + 1e-9) return factor * magnitude;
  }
  return magnitude * 10;
}

// Round values from `from` to `to`.
export function linearTicks(from: number, to: number, unit: Unit, parts: number): number[] {
  const by = step(to - from, unit, parts);
  const ticks = [];
  for (let index = Math.ceil(from / by - 1e-9); index <= Math.floor(to / by + 1e-9); index += 1) {
    // A product each time: repeated addition would drift.
    ticks.push(index * by);
  }
  return ticks;
}

// 1, 2 and 5 times powers of ten; only the powers when there are more than `dense` decades.
export function logTicks(from: number, to: number, dense: number): number[] {
  const first = Math.floor(Math.log10(Math.max(from, 1e-9)));
  const last = Math.ceil(Math.log10(Math.max(to, 1e-9)));
  const factors = last - first <= dense ? [1, 2, 5] : [1];
  const ticks = [];
  for (let decade = first; decade <= last; decade += 1) {
    for (const factor of factors) {
      const value = factor * 10 ** decade;
      if (value >= from * 0.9999 && value <= to * 1.0001) ticks.push(value);
    }
  }
  return ticks;
}

// Quantiles by number of nines: the median, then 90 %, 99 %, ...
export function nineTicks(from: number, to: number): number[] {
  const ticks = [0, -Math.log10(0.5)];
  for (let nines = 1; nines <= to + 1e-9; nines += 1) ticks.push(nines);
  return ticks.filter((value) => value >= from - 1e-9 && value <= to + 1e-9);
}

// Labels at their places from left to right; a label that would touch its neighbour is omitted, as
// in the SVG charts. `letter` is the width of a character.
export function apart(labels: string[], places: number[], letter: number): string[] {
  let free = -Infinity;
  return labels.map((label, index) => {
    const half = (label.length * letter) / 2;
    const at = places[index] ?? 0;
    if (at - half < free) return "";
    free = at + half + letter;
    return label;
  });
}

// From zero to a round value above `max`.
export function fromZero(max: number, unit: Unit, parts: number): [number, number] {
  const to = max > 0 ? max * 1.02 : 1;
  const by = step(to, unit, parts);
  return [0, Math.ceil(to / by - 1e-9) * by];
}

// The powers of ten that enclose the values; at least one decade.
export function decades(min: number, max: number): [number, number] {
  const from = 10 ** Math.floor(Math.log10(Math.max(min, 1)));
  const to = 10 ** Math.ceil(Math.log10(Math.max(max, 1)));
  return [from, to > from ? to : from * 10];
}
