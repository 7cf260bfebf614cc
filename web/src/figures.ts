// Live charts: figures like those of a report that are updated continuously.

import type { Actions } from "./actions";
import type { Chart } from "./chart";
import { enhance } from "./chart";
import type { Panel } from "./panels";
import { chartData, shownName } from "./panels";
import type { Intervals, Rows } from "./rows";

// The shortest time axis, in seconds.
const SPAN_S = 30;

class Figure {
  private readonly chart: Chart | null;

  constructor(place: HTMLElement, private readonly panel: Panel, private readonly rows: Rows) {
    const figure = document.createElement("figure");
    if (panel.wide) figure.className = "wide";
    const caption = document.createElement("figcaption");
    caption.textContent = panel.title;
    const legend = document.createElement("ul");
    legend.className = "legend";
    for (const { name, class: cls } of panel.lines) {
      const entry = document.createElement("li");
      entry.className = panel.stacked ? `${cls} area` : cls;
      entry.textContent = shownName(name);
      legend.append(entry);
    }
    const plot = document.createElement("div");
    plot.className = "plot";
    figure.append(caption);
    if (panel.note !== undefined) {
      const note = document.createElement("p");
      note.className = "chart-note";
      note.textContent = panel.note;
      figure.append(note);
    }
    figure.append(legend, plot);
    place.append(figure);
    const data = chartData(panel, rows, this.span(), []);
    this.chart = enhance(figure, data, { places: [rows.places], charts: [data] });
    figure.dataset["lines"] = String(panel.lines.length);
  }

  draw(bands: [number, number, string][], actions: Actions): void {
    const span = this.span();
    const all = [...bands, ...actions.bands(...span)];
    this.chart?.update(chartData(this.panel, this.rows, span, all), [this.rows.places]);
    // The number of values and marks drawn, for tests.
    const drawn = this.panel.lines.reduce(
      (sum, { name }) => sum + this.rows.column(name).filter((value) => value !== null).length, 0);
    this.chart?.plot.root.setAttribute("data-points", String(drawn));
    this.chart?.plot.root.setAttribute("data-marks", String(all.length - bands.length));
  }

  resize(): void {
    this.chart?.resize();
  }

  recolour(): void {
    this.chart?.recolour();
  }

  private span(): [number, number] {
    const { places } = this.rows;
    const from = Math.floor(places[0] ?? 0);
    return [from, Math.max(places[places.length - 1] ?? 0, from + SPAN_S)];
  }
}

// The charts of one source of rows, under a heading.
export class Board {
  private figures: Figure[] = [];
  private drawn = "";
  private readonly charts = document.createElement("div");

  constructor(
    place: HTMLElement,
    heading: string,
    private readonly rows: Rows,
    private readonly bands: Intervals,
    private readonly actions: Actions,
    private readonly panels: () => Panel[],
  ) {
    if (heading !== "") {
      const title = document.createElement("h2");
      title.textContent = heading;
      place.append(title);
    }
    this.charts.className = "charts";
    place.append(this.charts);
  }

  draw(): void {
    const panels = this.panels();
    // A new line, such as an interface with its first traffic, needs a new chart.
    const lines = JSON.stringify(panels.map((panel) => panel.lines));
    if (lines !== this.drawn) {
      this.drawn = lines;
      this.charts.replaceChildren();
      this.figures = panels.map((panel) => new Figure(this.charts, panel, this.rows));
    }
    const bands = this.bands.all.filter(([, , name]) => name === "measure");
    for (const figure of this.figures) figure.draw(bands, this.actions);
  }

  resize(): void {
    for (const figure of this.figures) figure.resize();
  }

  recolour(): void {
    for (const figure of this.figures) figure.recolour();
  }
}
