// An interactive chart: values under the pointer, dragging zooms, a double click resets the zoom,
// the legend switches lines on and off. Used by reports and by the live page.

import uPlot from "uplot";

import type { ChartData, LineData, PageData, Value } from "./data";
import { aligned, stacked } from "./data";
import { show, tick } from "./format";
import { drawn } from "./paths";
import { apart, decades, fromZero, linearTicks, logTicks, nineTicks } from "./scale";

// Cursors of charts over time are synchronised.
const TIME = "time";
// Average width of a character in FONT.
const LETTER = 6.2;
const FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, '
  + '"Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei", sans-serif';

export class Chart {
  readonly plot: uPlot;
  private readonly shown: boolean[];
  private raw: [number[], ...Value[][]];
  private readonly tip: HTMLElement;
  private colours: Map<string, string> = new Map();
  // Told of the chosen span of time; null: the whole time.
  onWindow: ((range: [number, number] | null) => void) | null = null;

  // The chart is appended to `host`.
  constructor(
    private readonly host: HTMLElement,
    private readonly data: ChartData,
    places: number[][],
  ) {
    this.raw = aligned(data, places);
    this.shown = data.lines.map((line) => !line.published);
    this.tip = document.createElement("div");
    this.tip.className = "tip";
    this.tip.hidden = true;
    this.readColours();
    this.plot = new uPlot(this.options(), this.drawn(), host);
    this.plot.over.append(this.tip);
    this.plot.over.addEventListener("dblclick", () => this.onWindow?.(null));
  }

  // Shows new values of the same lines and keeps the zoom.
  update(data: ChartData, places: number[][]): void {
    const [from, to] = this.wholeX();
    const { min, max } = this.plot.scales["x"]!;
    const zoomed = min != null && max != null && (min > from || max < to);
    this.data.lines = data.lines;
    this.data.bands = data.bands;
    this.data.marks = data.marks;
    this.data.x = data.x;
    this.raw = aligned(data, places);
    this.plot.setData(this.drawn(), !zoomed);
    if (zoomed) this.plot.setScale("x", { min, max });
  }

  isShown(line: number): boolean {
    return this.shown[line] ?? false;
  }

  // Switches lines on or off.
  setShown(lines: number[], on: boolean): void {
    for (const line of lines) this.shown[line] = on;
    this.plot.batch(() => {
      for (const line of lines) this.plot.setSeries(this.series(line), { show: on });
      // Areas stacked on a hidden line move down.
      this.plot.setData(this.drawn(), false);
      this.reset();
    });
  }

  // Resets the zoom.
  reset(): void {
    const [from, to] = this.wholeX();
    this.plot.setScale("x", { min: from, max: to });
  }

  // Shows a span of time.
  setWindow(range: [number, number] | null): void {
    if (range === null) this.reset();
    else this.plot.setScale("x", { min: range[0], max: range[1] });
  }

  // Takes the chart off the page.
  destroy(): void {
    this.onWindow = null;
    this.plot.destroy();
  }

  resize(): void {
    this.plot.setSize(this.size());
  }

  // Applies the page's colours after a change between light and dark.
  recolour(): void {
    this.readColours();
    this.plot.redraw(false, true);
  }

  // Areas are drawn from the top of the stack down, so the plot has the lines in reverse order.
  private series(line: number): number {
    return this.data.stacked ? this.data.lines.length - line : line + 1;
  }

  private drawn(): uPlot.AlignedData {
    const [x, ...columns] = this.raw;
    const lines = this.data.stacked ? stacked(columns, this.shown).reverse() : columns;
    return [x, ...lines] as uPlot.AlignedData;
  }

  private wholeX(): [number, number] {
    const { from, to } = this.data.x;
    let end = to;
    // Published figures may reach further.
    this.data.lines.forEach((line, index) => {
      if (!line.published || !this.shown[index]) return;
      const places = this.raw[0];
      places.forEach((at, place) => {
        if (this.raw[index + 1]?.[place] != null) end = Math.max(end, at * 1.04);
      });
    });
    return [from, end];
  }

  private size(): { width: number; height: number } {
    const width = Math.max(this.host.clientWidth, 120);
    const height = this.data.wide ? Math.min(Math.max(width * 0.3, 230), 320) : 230;
    return { width, height };
  }

  private readColours(): void {
    const style = getComputedStyle(document.documentElement);
    for (const name of [
      "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "ink-2", "ink-3", "rule", "axis", "band",
      "card", "level",
    ]) {
      this.colours.set(name, style.getPropertyValue(`--${name}`).trim());
    }
  }

  private colour(name: string): string {
    return this.colours.get(name) || "#888";
  }

  private options(): uPlot.Options {
    const { x, y } = this.data;
    const over = x.unit === "seconds";
    // A small screen has no room for the axis title; the chart has a title.
    const narrow = this.size().width < 400;
    const parts = () => (this.size().width > 600 ? 8 : 4);
    const xSplits = (u: uPlot): number[] => {
      const [from, to] = [u.scales["x"]!.min!, u.scales["x"]!.max!];
      return x.unit === "nines" ? nineTicks(from, to) : linearTicks(from, to, x.unit, parts());
    };
    const ySplits = (u: uPlot): number[] => {
      const [from, to] = [u.scales["y"]!.min!, u.scales["y"]!.max!];
      return y.log ? logTicks(from, to, this.data.wide ? 3 : 2) : linearTicks(from, to, y.unit, 5);
    };
    type Labels = (u: uPlot, splits: number[]) => string[];
    const values = (unit: AxisUnit, log: boolean): Labels => (_, splits) => {
      const by = splits.length > 1 ? Math.abs(splits[1]! - splits[0]!) : 1;
      return splits.map((value) => tick(value, log ? value : by, unit));
    };
    const xValues: Labels = (u, splits) => {
      const places = splits.map((value) => u.valToPos(value, "x"));
      return apart(values(x.unit, false)(u, splits), places, LETTER);
    };
    const axis = {
      font: FONT,
      labelFont: FONT,
      labelSize: 18,
      stroke: () => this.colour("ink-3"),
      // Label every tick: by default uPlot labels only some of a logarithmic axis.
      filter: (_: uPlot, splits: number[]) => splits,
      grid: { stroke: () => this.colour("rule"), width: 1 },
      ticks: { stroke: () => this.colour("axis"), width: 1, size: 4 },
    };
    const series = this.data.lines.map((_, index) => this.line(index));
    if (this.data.stacked) series.reverse();
    return {
      ...this.size(),
      scales: {
        x: { time: false, range: (u, min, max) => this.rangeX(u, min, max) },
        y: { distr: y.log ? 3 : 1, range: (_u, min, max) => this.rangeY(min, max) },
      },
      axes: [
        { ...axis, label: x.title, size: 30, splits: xSplits, values: xValues },
        {
          ...axis,
          ...(narrow ? {} : { label: y.title }),
          size: 62,
          splits: ySplits,
          values: values(y.unit, y.log),
        },
      ],
      series: [{}, ...series],
      legend: { show: false },
      padding: [18, 24, 0, 0],
      cursor: {
        y: false,
        drag: { x: true, y: false, setScale: true },
        points: { size: 7 },
        ...(over ? { sync: { key: TIME, scales: ["x", null] as [string, null] } } : {}),
      },
      hooks: {
        drawClear: [(u) => this.drawBands(u)],
        draw: [(u) => this.drawMarks(u)],
        setCursor: [(u) => this.showValues(u)],
        setSelect: [(u) => this.tellWindow(u)],
      },
    };
  }

  private tellWindow(u: uPlot): void {
    const { left, width } = u.select;
    if (width > 0) this.onWindow?.([u.posToVal(left, "x"), u.posToVal(left + width, "x")]);
  }

  private rangeX(_u: uPlot, min: number | null, max: number | null): [number, number] {
    const [from, to] = this.wholeX();
    // Without a zoom, the whole range.
    if (min === null || max === null || !(max > min)) return [from, to];
    const all = this.raw[0];
    const whole = min <= (all[0] ?? min) && max >= (all[all.length - 1] ?? max);
    return whole ? [from, to] : [min, max];
  }

  private rangeY(min: number | null, max: number | null): [number, number] {
    const { y } = this.data;
    const levels = this.data.marks.filter((mark) => mark.x === null).map((mark) => mark.y);
    if (y.log) return decades(min ?? 1, Math.max(max ?? 1, ...levels));
    // Shares of a whole keep an axis to 100 %.
    const percent = y.unit === "percent" && y.to === 100;
    if (percent) return [0, Math.max(100, max ?? 0)];
    const marks = this.data.marks.map((mark) => mark.y);
    return fromZero(Math.max(max ?? 0, ...marks), y.unit, 5);
  }

  private line(index: number): uPlot.Series {
    const line = this.data.lines[index]!;
    const classes = line.class.split(" ");
    const colour = () =>
      this.colour(classes.includes("reference") ? "ink-3" : (classes[0] ?? "c1"));
    const series: uPlot.Series = {
      label: line.name,
      scale: "y",
      show: this.shown[index] ?? true,
      stroke: colour,
      width: 2,
      paths: drawn(this.data.stacked),
      // A value between two gaps has no line, so it gets a point.
      points: { show: true, size: 5, fill: colour, filter: (u, index) => isolated(u.data[index]!) },
    };
    if (this.data.stacked) {
      series.points = { show: false };
      series.width = 0.5;
      series.stroke = () => this.colour("card");
      series.fill = colour;
      return series;
    }
    if (classes.includes("under")) {
      series.width = 7;
      series.stroke = () => `${colour()}66`;
    }
    if (classes.includes("reference")) {
      series.width = 1.5;
      series.dash = [5, 4];
    }
    if (classes.includes("dashed")) series.dash = [7, 4];
    if (classes.includes("points")) series.paths = () => null;
    if (line.published && !classes.includes("points")) series.width = 1.25;
    if (line.marker !== "") series.points = this.markers(line, colour);
    return series;
  }

  private markers(line: LineData, colour: () => string): uPlot.Series.Points {
    const kind = line.marker;
    // Published figures are paler than measured ones.
    const inside = line.published ? () => `${colour()}55` : colour;
    return {
      show: true,
      size: 8,
      stroke: colour,
      fill: kind === "hollow" ? () => this.colour("card") : inside,
      width: 1.5,
      paths: (u, series, from, to) => {
        const shapes = new Path2D();
        const r = 4.2 * uPlot.pxRatio;
        const [xs, ys] = [u.data[0]!, u.data[series]!];
        for (let index = from; index <= to; index += 1) {
          const value = ys[index];
          if (value === null || value === undefined) continue;
          const cx = u.valToPos(xs[index]!, "x", true);
          const cy = u.valToPos(value, "y", true);
          if (kind === "triangle") {
            shapes.moveTo(cx, cy - r * 1.2);
            shapes.lineTo(cx + r * 1.1, cy + r * 0.8);
            shapes.lineTo(cx - r * 1.1, cy + r * 0.8);
            shapes.closePath();
          } else if (kind === "cross") {
            shapes.moveTo(cx - r, cy - r);
            shapes.lineTo(cx + r, cy + r);
            shapes.moveTo(cx + r, cy - r);
            shapes.lineTo(cx - r, cy + r);
          } else {
            shapes.moveTo(cx + r, cy);
            shapes.arc(cx, cy, r, 0, 2 * Math.PI);
          }
        }
        return { stroke: shapes, fill: shapes };
      },
    };
  }

  private drawBands(u: uPlot): void {
    const { left, top, width, height } = u.bbox;
    const right = left + width;
    const px = uPlot.pxRatio;
    const place = (at: number) => Math.min(Math.max(u.valToPos(at, "x", true), left), right);
    u.ctx.save();
    u.ctx.font = scaled(FONT);
    u.ctx.textBaseline = "bottom";
    const taken: [number, number][] = [];
    for (const [from, to, name] of this.data.bands) {
      const [x0, x1] = [place(from), place(to)];
      if (x1 <= x0) continue;
      u.ctx.fillStyle = this.colour("band");
      u.ctx.fillRect(x0, top, x1 - x0, height);
      u.ctx.fillStyle = this.colour("ink-3");
      const length = u.ctx.measureText(name).width;
      if (length < x1 - x0) {
        const [left, right] = [(x0 + x1 - length) / 2, (x0 + x1 + length) / 2];
        // A name that would touch that of another band is omitted.
        if (taken.some(([start, end]) => left <= end && right >= start)) continue;
        taken.push([left, right]);
        u.ctx.textAlign = "center";
        u.ctx.fillText(name, (x0 + x1) / 2, top - 4 * px);
        continue;
      }
      // The name of a narrow band is written beside it if it fits before the next band.
      const others = this.data.bands.map(([start]) => start).filter((start) => start > from);
      const room = others.length > 0 ? place(Math.min(...others)) : right;
      if (x1 + length + 6 * px < room) {
        u.ctx.textAlign = "left";
        u.ctx.fillText(name, x1 + 3 * px, top + 13 * px);
      }
    }
    u.ctx.restore();
  }

  private drawMarks(u: uPlot): void {
    const { left, top, width, height } = u.bbox;
    const bottom = top + height;
    const px = uPlot.pxRatio;
    u.ctx.save();
    u.ctx.font = scaled(FONT);
    u.ctx.lineWidth = 1.25 * px;
    u.ctx.setLineDash([6 * px, 4 * px]);
    u.ctx.textBaseline = "alphabetic";
    const levels = this.data.marks.filter((mark) => mark.x === null).map((mark) => mark.y);
    for (const mark of this.data.marks) {
      const y = u.valToPos(mark.y, "y", true);
      if (y < top - 1 || y > bottom + 1) continue;
      const name = mark.colour > 0 ? `c${(mark.colour - 1) % 8 + 1}` : "level";
      u.ctx.strokeStyle = this.colour(name);
      u.ctx.fillStyle = this.colour(name);
      u.ctx.beginPath();
      if (mark.x === null) {
        u.ctx.moveTo(left, y);
        u.ctx.lineTo(left + width, y);
        u.ctx.stroke();
        u.ctx.textAlign = "left";
        // The highest level has its name above the line, others below.
        const above = mark.y >= Math.max(...levels);
        u.ctx.fillText(mark.name, left + 5 * px, above ? y - 4 * px : y + 13 * px);
        continue;
      }
      const x = u.valToPos(mark.x, "x", true);
      if (x < left || x > left + width) continue;
      u.ctx.moveTo(x, y);
      u.ctx.lineTo(x, bottom);
      u.ctx.stroke();
      const room = x + 60 * px <= left + width;
      u.ctx.textAlign = room ? "left" : "right";
      const up = (5 + 13 * (mark.colour - 1)) * px;
      u.ctx.fillText(mark.name, x + (room ? 4 : -4) * px, bottom - up);
    }
    u.ctx.restore();
  }

  private showValues(u: uPlot): void {
    const { left, idx } = u.cursor;
    if (idx === null || idx === undefined || left === undefined || left < 0) {
      this.tip.hidden = true;
      return;
    }
    const [xs, ...columns] = this.raw;
    const rows: HTMLElement[] = [];
    this.data.lines.forEach((line, index) => {
      const value = columns[index]?.[idx];
      if (!this.shown[index] || value === null || value === undefined) return;
      const row = document.createElement("div");
      row.className = line.class;
      const name = document.createElement("span");
      name.textContent = line.name;
      const figure = document.createElement("b");
      figure.textContent = show(value, this.data.y.unit);
      row.append(name, figure);
      rows.push(row);
    });
    if (rows.length === 0) {
      this.tip.hidden = true;
      return;
    }
    const head = document.createElement("p");
    head.textContent = show(xs[idx]!, this.data.x.unit);
    this.tip.replaceChildren(head, ...rows);
    this.tip.hidden = false;
    const width = u.over.clientWidth;
    const beside = left + 14 + this.tip.offsetWidth;
    const at = beside < width ? left + 14 : Math.max(left - 14 - this.tip.offsetWidth, 0);
    this.tip.style.transform = `translate(${Math.round(at)}px, 4px)`;
  }
}

type AxisUnit = ChartData["x"]["unit"];

// Indices of values without a neighbour on either side.
function isolated(values: uPlot.AlignedData[number]): number[] {
  const places: number[] = [];
  for (let index = 0; index < values.length; index += 1) {
    if (values[index] != null && values[index - 1] == null && values[index + 1] == null) {
      places.push(index);
    }
  }
  return places;
}

function scaled(font: string): string {
  return font.replace(/^\d+/, (size) => String(Math.round(Number(size) * uPlot.pxRatio)));
}

// Makes a figure of a page interactive: `figure` contains a legend and an element for the plot.
export function enhance(figure: HTMLElement, data: ChartData, page: PageData): Chart | null {
  const host = figure.querySelector<HTMLElement>(".plot");
  if (host === null || data.lines.length === 0) return null;
  const place = document.createElement("div");
  place.className = "live-plot";
  host.append(place);
  figure.classList.add("answers");
  const chart = new Chart(place, data, page.places);
  const entries = [...figure.querySelectorAll<HTMLElement>(".legend > li")];
  entries.forEach((entry, line) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...entry.childNodes);
    button.addEventListener("click", () => {
      const on = !chart.isShown(line);
      chart.setShown([line], on);
      button.setAttribute("aria-pressed", String(on));
    });
    button.setAttribute("aria-pressed", String(chart.isShown(line)));
    entry.append(button);
  });
  const others = data.lines.flatMap((line, index) => (line.published ? [index] : []));
  const toggle = figure.querySelector<HTMLInputElement>(".toggle input");
  toggle?.addEventListener("change", () => {
    chart.setShown(others, toggle.checked);
    for (const line of others) {
      entries[line]?.querySelector("button")?.setAttribute("aria-pressed", String(toggle.checked));
    }
  });
  if (toggle?.checked) chart.setShown(others, true);
  return chart;
}
