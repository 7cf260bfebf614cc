// The columns of the records.

import type { ComponentChildren } from "preact";

import type { Dictionary } from "../i18n";
import { VerdictOrState } from "./verdict-cell";
import { When } from "../parts/when";
import type { Language } from "../settings";
import { count, percent, perSecond, span, targetName, us } from "../show";
import type { Row } from "../types";

export type ColumnId = Exclude<keyof Dictionary["columns"], "name" | "state" | "tags">;

export interface Column {
  id: ColumnId;
  isNumber: boolean;
  // The server sorts by it.
  isSorted: boolean;
  cell: (row: Row, t: Dictionary, language: Language) => ComponentChildren;
}

function column(
  id: ColumnId,
  cell: Column["cell"],
  options: { isNumber?: boolean; isSorted?: boolean } = {},
): Column {
  return { id, cell, isNumber: options.isNumber ?? true, isSorted: options.isSorted ?? true };
}

const WORDS = { isNumber: false };

export const COLUMNS: Column[] = [
  column("verdict", (row) => <VerdictOrState row={row} />, WORDS),
  column("kind", (row, t) => t.kinds[row.kind] ?? row.kind, { isNumber: false, isSorted: false }),
  column("scenario", (row) => row.scenario, WORDS),
  column("target", (row, t) => targetName(row.target, t.words.ownBroker), WORDS),
  column("version", (row) => row.version, WORDS),
  column("started", (row) => <When iso={row.started} />, WORDS),
  column("duration_s", (row, _, language) => span(row.duration_s, language)),
  column("attempted_tps", (row) => perSecond(row.attempted_tps)),
  column("achieved_tps", (row) => perSecond(row.achieved_tps)),
  column("e2e_latency_us_p99", (row) => us(row.e2e_latency_us_p99)),
  column("loss_percent", (row) => percent(row.loss_percent)),
  column("cpu_percent", (row) => percent(row.cpu_percent)),
  column("cpu_75_tps", (row) => count(row.cpu_75_tps)),
];

// A window narrower than this shows fewer columns unless they are chosen.
const WIDE_PX = 1600;
const FEW: ColumnId[] = [
  "verdict",
  "target",
  "started",
  "duration_s",
  "achieved_tps",
  "e2e_latency_us_p99",
  "cpu_percent",
];
const USUAL: ColumnId[] = [
  "verdict",
  "scenario",
  "target",
  "started",
  "duration_s",
  "achieved_tps",
  "e2e_latency_us_p99",
  "loss_percent",
  "cpu_percent",
  "cpu_75_tps",
];

// The chosen columns in their order; unknown ones are left out.
export function shownColumns(chosen: string[] | undefined, width: number): Column[] {
  const wanted: string[] = chosen ?? (width < WIDE_PX ? FEW : USUAL);
  return COLUMNS.filter(({ id }) => wanted.includes(id));
}

// The next order by a column: largest or latest first for figures and times, then the other way.
export function nextSort(sort: string, id: string, isNumber: boolean): string {
  const first = isNumber || id === "started" ? `-${id}` : id;
  if (sort === first) return first.startsWith("-") ? id : `-${id}`;
  return first;
}
