// The script of a report: makes every figure with data an interactive chart.

import type { Chart } from "./chart";
import { enhance } from "./chart";
import type { PageData } from "./data";

function main(): void {
  const source = document.getElementById("chart-data");
  const page = JSON.parse(source?.textContent || "null") as PageData | null;
  if (page === null) return;
  const charts: Chart[] = [];
  const start = (figure: HTMLElement): void => {
    const data = page.charts[Number(figure.dataset["chart"])];
    const chart = data ? enhance(figure, data, page) : null;
    if (chart !== null) charts.push(chart);
  };
  const figures = (within: ParentNode): HTMLElement[] =>
    [...within.querySelectorAll<HTMLElement>("figure[data-chart]")];
  for (const figure of figures(document)) {
    if (figure.closest("details:not([open])") === null) start(figure);
  }
  // What is folded has no width yet.
  for (const folded of document.querySelectorAll("details:not([open])")) {
    folded.addEventListener("toggle", () => figures(folded).forEach(start), { once: true });
  }
  let width = document.documentElement.clientWidth;
  window.addEventListener("resize", () => {
    if (document.documentElement.clientWidth === width) return;
    width = document.documentElement.clientWidth;
    for (const chart of charts) chart.resize();
  });
  const scheme = window.matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", () => {
    for (const chart of charts) chart.recolour();
  });
}

main();
