// Live charts: figures like those of a report that are updated continuously.

import type { Chart } from "./chart";
import { enhance } from "./chart";
import type { Course, Source } from "./course";
import { show } from "./format";
import type { Panel } from "./panels";
import { chartData, shownName } from "./panels";
import type { Rows } from "./rows";
import { tableOf } from "./table";
import type { TableWords } from "./table";
import type { Range, TimeWindow } from "./window";

// The shortest time axis, in seconds.
const SPAN_S = 30;

// How a page shows its charts.
export interface Look {
  // Translates the words of charts.
  text: (words: string) => string;
  // The span of time that all charts share.
  window: TimeWindow;
  // Words of the table of values below each chart; without them there is none.
  table?: TableWords;
}

class Figure {
  private readonly chart: Chart | null;
  private readonly plot: HTMLElement;

  constructor(
    place: HTMLElement,
    private readonly panel: Panel,
    private readonly source: Source,
    private readonly course: Course,
    private readonly look: Look,
  ) {
    const figure = document.createElement("figure");
    if (panel.wide) figure.className = "wide";
    const caption = document.createElement("figcaption");
    caption.textContent = look.text(panel.title);
    const legend = document.createElement("ul");
    legend.className = "legend";
    for (const { name, class: cls } of panel.lines) {
      const entry = document.createElement("li");
      entry.className = panel.stacked ? `${cls} area` : cls;
      entry.textContent = look.text(shownName(name));
      legend.append(entry);
    }
    this.plot = document.createElement("div");
    this.plot.className = "plot";
    this.plot.setAttribute("role", "img");
    figure.append(caption);
    if (panel.note !== undefined) {
      const note = document.createElement("p");
      note.className = "chart-note";
      note.textContent = look.text(panel.note);
      figure.append(note);
    }
    figure.append(legend, this.plot);
    if (look.table !== undefined) {
      const source = () => ({ panel, rows: this.rows, range: look.window.range });
      figure.append(tableOf(look.table, source));
    }
    place.append(figure);
    const data = this.data([]);
    this.chart = enhance(figure, data, { places: [this.rows.places], charts: [data] });
    if (this.chart !== null) {
      this.chart.setWindow(look.window.range);
      this.chart.onWindow = (range) => look.window.select(range);
    }
    figure.dataset["lines"] = String(panel.lines.length);
  }

  draw(bands: [number, number, string][]): void {
    const span = this.span();
    const all = [...bands, ...this.course.actions.bands(...span)];
    const data = this.data(all);
    this.chart?.update(data, [this.rows.places]);
    // The number of values and marks drawn, for tests.
    const drawn = this.panel.lines.reduce(
      (sum, { name }) => sum + this.rows.column(name).filter((value) => value !== null).length, 0);
    const root = this.chart?.plot.root;
    root?.setAttribute("data-points", String(drawn));
    root?.setAttribute("data-marks", String(all.length - bands.length));
    root?.setAttribute("data-levels", String(data.marks.length));
    this.plot.setAttribute("aria-label", this.inWords());
  }

  setWindow(range: Range): void {
    this.chart?.setWindow(range);
  }

  resize(): void {
    this.chart?.resize();
  }

  recolour(): void {
    this.chart?.recolour();
  }

  destroy(): void {
    this.chart?.destroy();
  }

  private get rows(): Rows {
    return this.source.rows;
  }

  private data(bands: [number, number, string][]): ReturnType<typeof chartData> {
    const { course, look, panel, rows } = this;
    const thresholds = this.source.of === "run" ? course.thresholds.conditions() : [];
    return chartData(panel, rows, this.span(), bands, thresholds, look.text);
  }

  // The chart's name and its latest values.
  private inWords(): string {
    const { look, panel, rows } = this;
    const values = panel.lines.flatMap(({ name }) => {
      const column = rows.column(name);
      const latest = column[column.length - 1];
      return latest == null ? [] : [`${look.text(shownName(name))} ${show(latest, panel.unit)}`];
    });
    const title = look.text(panel.title);
    return values.length > 0 ? `${title}: ${values.join(", ")}` : title;
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
  private readonly forget: () => void;

  constructor(
    place: HTMLElement,
    heading: string,
    private readonly source: Source,
    private readonly course: Course,
    private readonly look: Look,
  ) {
    if (heading !== "") {
      const title = document.createElement("h2");
      title.textContent = heading;
      place.append(title);
    }
    this.charts.className = "charts";
    place.append(this.charts);
    this.forget = look.window.subscribe((range) => {
      for (const figure of this.figures) figure.setWindow(range);
    });
  }

  draw(): void {
    const panels = this.source.panels();
    // A new line, such as an interface with its first traffic, needs a new chart.
    const lines = JSON.stringify(panels.map((panel) => panel.lines));
    if (lines !== this.drawn) {
      this.drawn = lines;
      for (const figure of this.figures) figure.destroy();
      this.charts.replaceChildren();
      this.figures = panels.map(
        (panel) => new Figure(this.charts, panel, this.source, this.course, this.look));
      // Each was as wide as the row until the next one was beside it.
      this.resize();
    }
    const bands = this.course.bands.all.filter(([, , name]) => name === "measure");
    for (const figure of this.figures) figure.draw(bands);
  }

  resize(): void {
    for (const figure of this.figures) figure.resize();
  }

  recolour(): void {
    for (const figure of this.figures) figure.recolour();
  }

  destroy(): void {
    this.forget();
    for (const figure of this.figures) figure.destroy();
  }
}
