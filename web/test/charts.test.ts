import assert from "node:assert/strict";
import { test } from "node:test";

import type { ChartData, LineData } from "../src/data";
import { aligned, stacked } from "../src/data";
import { bytes, latency, quantile, show, thousands, tick } from "../src/format";
import { pieces } from "../src/paths";
import { apart, decades, fromZero, linearTicks, logTicks, nineTicks } from "../src/scale";

const line = (places: number, values: (number | null)[]): LineData => ({
  name: "a", class: "c1", marker: "", published: false, places, values,
});
const axis = { title: "", unit: "number", log: false, from: 0, to: 1 } as const;
const chart = (lines: LineData[]): ChartData => ({
  title: "", wide: false, stacked: false, x: { ...axis }, y: { ...axis }, lines, bands: [], marks: [],
});

test("figures read as the program writes them", () => {
  assert.equal(thousands(1_234_567), "1,234,567");
  assert.equal(thousands(999), "999");
  assert.equal(latency(999), "999 µs");
  assert.equal(latency(1234), "1.23 ms");
  assert.equal(latency(12_345), "12.3 ms");
  assert.equal(latency(999_999), "1.00 s");
  assert.equal(bytes(512), "512 B");
  assert.equal(bytes(1536), "1.5 KiB");
  assert.equal(bytes(5_368_709_120), "5.0 GiB");
  assert.equal(show(0.25, "rate"), "0.3/s");
  assert.equal(show(12.34, "percent"), "12.3 %");
});

test("quantiles by their nines", () => {
  assert.deepEqual([0, 1, 2, 3, 4].map(quantile), ["0 %", "90 %", "99 %", "99.9 %", "99.99 %"]);
  assert.equal(quantile(-Math.log10(0.5)), "50 %");
  assert.deepEqual(nineTicks(0, 2.5).map(quantile), ["0 %", "50 %", "90 %", "99 %"]);
});

test("labels that would touch are left out", () => {
  const labels = ["0 %", "50 %", "90 %", "99 %"];
  assert.deepEqual(apart(labels, [0, 60, 120, 180], 6), labels);
  assert.deepEqual(apart(labels, [0, 20, 60, 85], 6), ["0 %", "", "90 %", ""]);
});

test("ticks are round", () => {
  assert.deepEqual(linearTicks(0, 60_000, "rate", 6).map((v) => tick(v, 1e4, "rate")),
    ["0", "10K", "20K", "30K", "40K", "50K", "60K"]);
  assert.deepEqual(logTicks(100, 1000, 2), [100, 200, 500, 1000]);
  assert.deepEqual(logTicks(1, 1e6, 3), [1, 10, 100, 1e3, 1e4, 1e5, 1e6]);
  assert.equal(tick(2048, 1024, "bytes"), "2 KiB");
  assert.equal(tick(1500, 500, "latency"), "1.5 ms");
  assert.equal(tick(0, 500, "latency"), "0");
  assert.equal(tick(0.4, 0.2, "number"), "0.4");
  assert.deepEqual(fromZero(10_000, "number", 6), [0, 12_000]);
  assert.deepEqual(fromZero(0, "number", 5), [0, 1]);
  assert.deepEqual(decades(300, 20_000), [100, 100_000]);
  assert.deepEqual(decades(0, 0), [1, 10]);
});

test("a gap ends a piece of a line, a place of another line does not", () => {
  const values = [1, null, 2, undefined, 3, null, null, 4];
  assert.deepEqual(pieces(values, 0, 7), [[0], [2, 4], [7]]);
  assert.deepEqual(pieces(values, 2, 3), [[2]]);
  assert.deepEqual(pieces([null, undefined], 0, 1), []);
});

test("lines of different places are put over all of them", () => {
  const places = [[1, 3], [2, 3]];
  const both = aligned(chart([line(0, [10, null]), line(1, [20, 30])]), places);
  assert.deepEqual(both, [[1, 2, 3], [10, undefined, null], [undefined, 20, 30]]);
  const one = aligned(chart([line(0, [1, 2]), line(0, [3, 4])]), places);
  assert.deepEqual(one, [[1, 3], [1, 2], [3, 4]]);
});

test("stacks skip lines that are switched off", () => {
  const columns = [[1, 1], [2, null], [4, 4]];
  assert.deepEqual(stacked(columns, [true, true, true]), [[1, 1], [3, null], [7, 5]]);
  assert.deepEqual(stacked(columns, [true, false, true]), [[1, 1], [2, null], [5, 5]]);
});
