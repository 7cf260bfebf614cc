// The values of a chart as a table: the same without seeing the picture.

import { show } from "./format";
import type { Panel } from "./panels";
import { shownName } from "./panels";
import type { Rows } from "./rows";
import type { Range } from "./window";

// Rows of the table; of more values some are left out evenly.
const ROWS_MAX = 60;

export interface TableWords {
  summary: string;
  second: string;
  text: (words: string) => string;
}

export interface TableSource {
  panel: Panel;
  rows: Rows;
  range: Range;
}

// The places of the rows to show: those within the range, evenly thinned out.
export function chosen(places: number[], range: Range, most: number = ROWS_MAX): number[] {
  const within = places.flatMap((at, index) =>
    range === null || (at >= range[0] && at <= range[1]) ? [index] : [],
  );
  const by = Math.max(Math.ceil(within.length / most), 1);
  return within.filter((_, index) => index % by === 0);
}

// A folded table that is filled when it is opened.
export function tableOf(words: TableWords, source: () => TableSource): HTMLDetailsElement {
  const details = document.createElement("details");
  details.className = "values";
  const summary = document.createElement("summary");
  summary.textContent = words.summary;
  const scroll = document.createElement("div");
  scroll.className = "scroll";
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", words.summary);
  details.append(summary, scroll);
  details.addEventListener("toggle", () => {
    scroll.replaceChildren(...(details.open ? [filled(words, source())] : []));
  });
  return details;
}

function cell(tag: "th" | "td", content: string): HTMLElement {
  const made = document.createElement(tag);
  made.textContent = content;
  return made;
}

function filled(words: TableWords, { panel, rows, range }: TableSource): HTMLTableElement {
  const table = document.createElement("table");
  const head = table.createTHead().insertRow();
  const names = panel.lines.map(({ name }) => words.text(shownName(name)));
  head.append(...[words.second, ...names].map((name) => cell("th", name)));
  const body = table.createTBody();
  const columns = panel.lines.map(({ name }) => rows.column(name));
  for (const index of chosen(rows.places, range)) {
    const values = columns.map((column) => column[index] ?? null);
    // The row of a gap.
    if (values.every((value) => value === null)) continue;
    const shown = values.map((value) => (value === null ? "–" : show(value, panel.unit)));
    const row = body.insertRow();
    row.append(
      cell("th", rows.places[index]!.toFixed(1)),
      ...shown.map((value) => cell("td", value)),
    );
  }
  return table;
}
