// The live page of a run.

import { AGENT_COLUMNS, agentCells } from "./agents";
import { Course, follow } from "./course";
import type { Source, Watcher } from "./course";
import { Board } from "./figures";
import type { Look } from "./figures";
import { bytes, latency, rate, show, thousands, withoutDate } from "./format";
import type { EndNews, SecondNews, StepNews } from "./news";
import { brokersOf, busiest, hasLogins, largest } from "./panels";
import { unitOf } from "./thresholds";
import type { ThresholdState } from "./thresholds";
import { TimeWindow } from "./window";

// The stop button must be pressed a second time within this time.
const CONFIRM_MS = 5000;

function element<T extends HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no ${id}`);
  return found as T;
}

function text(tag: string, content: string, cls = ""): HTMLElement {
  const made = document.createElement(tag);
  made.textContent = content;
  if (cls !== "") made.className = cls;
  return made;
}

function us(value: number | null): string {
  return value === null ? "–" : latency(value);
}

function messageTiles(row: SecondNews | null): [string, string][] {
  return [
    [row === null ? "–" : rate(row.sent_per_s), "messages per second in"],
    [row === null ? "–" : rate(row.received_per_s), "messages per second out"],
    [us(row?.e2e_p50_us ?? null), "median latency, end to end"],
    [us(row?.e2e_p99_us ?? null), "99th percentile"],
  ];
}

function loginTiles(row: SecondNews): [string, string][] {
  return [
    [rate(row.login_accepted_per_s ?? 0), "logins accepted per second"],
    [rate(row.login_refused_per_s ?? 0), "logins refused per second"],
    [us(row.login_p50_us), "median login latency"],
    [us(row.login_p99_us), "99th percentile"],
  ];
}

function percent(value: number | null): string {
  return value === null ? "–" : `${value.toFixed(0)} %`;
}

// Words of the page's charts stay as they are.
const LOOK: Look = { text: (words) => words, window: new TimeWindow() };

function headingOf({ of, name }: Source): string {
  switch (of) {
    case "run": return "";
    case "groups": return "Groups";
    case "broker": return `Broker ${name}`;
    case "host": return `Host ${name}`;
  }
}

class Page implements Watcher {
  private course = new Course();
  private boards: Board[] = [];
  private isDrawPending = false;

  began(course: Course): void {
    this.course = course;
    for (const board of this.boards) board.destroy();
    this.boards = [];
    element("charts").replaceChildren();
    element("steps").querySelector("tbody")?.replaceChildren();
    const hello = course.hello;
    const name = withoutDate(hello?.name ?? "");
    document.title = `${name} - Tacho`;
    element("name").textContent = name;
    element("kind").textContent = hello?.kind === "run" ? "Live run" : `Live ${hello?.kind}`;
    element<HTMLButtonElement>("stop").disabled = false;
    this.notice("");
    const forgotten = hello?.forgotten ?? 0;
    if (forgotten > 0) {
      this.notice(`The first ${thousands(forgotten)} rows are only in the run's files.`);
    }
    this.drawAbout();
    this.drawFailures();
    this.drawActions();
    this.drawSteps();
    if (course.end !== null) this.drawEnd(course.end);
    this.draw();
  }

  changed(kind: string): void {
    const { course } = this;
    switch (kind) {
      case "run": this.drawAbout(); break;
      case "failed": this.drawFailures(); break;
      case "action": this.drawActions(); break;
      case "step": this.drawSteps(); break;
      case "end":
        if (course.end !== null) this.drawEnd(course.end);
        break;
      case "missed": {
        const lost = thousands(course.missed);
        this.notice(`This page was too slow for ${lost} rows: reload it to see them.`);
        break;
      }
      default:
    }
    this.draw();
  }

  ready(): void {
    this.draw();
  }

  displaced(): void {
    element<HTMLButtonElement>("stop").disabled = true;
    this.notice("Another page has taken this one's place: too many are open. Reload to watch again.");
  }

  lost(forGood: boolean): void {
    element<HTMLButtonElement>("stop").disabled = true;
    this.notice(
      forGood
        ? "The run cannot be watched: it has ended. Reload to try again."
        : "No connection to the run; reconnecting.");
  }

  notice(sentence: string): void {
    const notice = element("notice");
    notice.textContent = sentence;
    notice.hidden = sentence === "";
  }

  drawProgress(): void {
    const { phase, end } = this.course;
    const bar = element<HTMLProgressElement>("bar");
    if (end !== null || phase === null) {
      element("phase").textContent = end !== null ? "ended" : "getting ready";
      element("time").textContent = "";
      if (end !== null) bar.value = 1;
      else bar.removeAttribute("value");
      return;
    }
    const done = this.course.phaseSeconds();
    const share = this.course.phaseShare();
    element("phase").textContent = phase.name;
    const of = `phase ${phase.number} of ${phase.of}`;
    if (phase.planned_s === null || share === null) {
      element("time").textContent = `${of}, ${done.toFixed(0)} s`;
      bar.removeAttribute("value");
    } else {
      const shown = Math.min(done, phase.planned_s);
      element("time").textContent = `${of}, ${shown.toFixed(0)} of ${phase.planned_s} s`;
      bar.value = share;
    }
  }

  resize(): void {
    for (const board of this.boards) board.resize();
  }

  recolour(): void {
    for (const board of this.boards) board.recolour();
  }

  get isOver(): boolean {
    return this.course.end !== null;
  }

  // Schedules one redraw for all events received until then.
  private draw(): void {
    if (this.isDrawPending) return;
    this.isDrawPending = true;
    requestAnimationFrame(() => {
      this.isDrawPending = false;
      this.drawProgress();
      this.drawTiles();
      this.drawThresholds();
      this.drawAgents();
      this.drawBoards();
    });
  }

  private drawBoards(): void {
    const { course } = this;
    for (const source of course.sources.slice(this.boards.length)) {
      this.boards.push(new Board(element("charts"), headingOf(source), source, course, LOOK));
    }
    for (const board of this.boards) board.draw();
  }

  private drawAbout(): void {
    const { run, hello } = this.course;
    if (run === null) return;
    element("description").textContent = run.description;
    const facts = [
      hello?.name ?? "", ...(run.title === null ? [] : [run.scenario]),
      `${thousands(run.clients)} clients`, `MQTT ${run.version}`, ...run.brokers,
    ];
    element("facts").replaceChildren(...facts.map((fact) => text("span", fact)));
    element("title").textContent = run.title ?? "";
  }

  private drawFailures(): void {
    const section = element("failures");
    const { sentences } = this.course;
    section.hidden = sentences.length === 0;
    section.querySelector("ul")?.replaceChildren(
      ...sentences.map((sentence) => text("li", sentence)));
  }

  private drawSteps(): void {
    const { steps, hello } = this.course;
    // The table of a single run would only repeat the verdict.
    element("steps").hidden = steps.length === 0 || hello?.kind === "run";
    const body = element("steps").querySelector("tbody");
    // Steps are only added.
    for (const step of steps.slice(body?.childElementCount ?? 0)) body?.append(stepRow(step));
  }

  private drawEnd(end: EndNews): void {
    this.notice("");
    const verdict = element("verdict");
    verdict.hidden = false;
    verdict.classList.toggle("ok", end.verdict === "ok");
    const what = end.verdict === null ? "ended without a result" : end.verdict.replaceAll("_", " ");
    const children: Node[] = [text("b", what)];
    if (end.reasons.length > 0) {
      const list = document.createElement("ul");
      list.append(...end.reasons.map((reason) => text("li", reason)));
      children.push(list);
    }
    const where = document.createElement("p");
    if (end.stays) {
      for (const file of end.files) {
        const link = document.createElement("a");
        link.href = `/run/${file}`;
        link.textContent = file === "report.html" ? "Open the report" : file;
        where.append(link, " ");
      }
    } else {
      where.append("All files are in ", text("code", end.directory), "; ");
      where.append(text("code", "tacho serve"), " shows them.");
    }
    children.push(where);
    verdict.replaceChildren(...children);
    const stop = element<HTMLButtonElement>("stop");
    stop.classList.remove("sure");
    stop.textContent = end.stays ? "Close" : "Stop";
    stop.disabled = !end.stays;
  }

  private drawActions(): void {
    const all = this.course.actions.all();
    const section = element("actions");
    section.hidden = all.length === 0;
    section.querySelector("tbody")?.replaceChildren(...all.map((action) => {
      const row = document.createElement("tr");
      const hasClients = action.kind !== "kill" && action.kind !== "run";
      row.append(
        text("th", `${action.at_s.toFixed(1)} s`), text("td", action.what),
        text("td", hasClients ? thousands(action.clients) : ""), text("td", action.followed));
      return row;
    }));
  }

  private drawAgents(): void {
    const { agents } = this.course;
    const section = element("agents");
    section.hidden = agents.length === 0;
    section.querySelector("tbody")?.replaceChildren(...agents.map((agent) => {
      const row = document.createElement("tr");
      const cells = agentCells(agent);
      row.append(
        text("th", agent.name), ...AGENT_COLUMNS.map((column) => text("td", cells[column])));
      return row;
    }));
  }

  // The page has no place of its own for them: they stand above the charts.
  private drawThresholds(): void {
    const states = this.course.thresholds.all();
    let list = document.getElementById("thresholds");
    if (states.length === 0) {
      list?.remove();
      return;
    }
    if (list === null) {
      list = text("section", "");
      list.id = "thresholds";
      element("charts").before(list);
    }
    const items = states.map((state) => {
      const item = text("li", "");
      const chip = text("span", inWords(state), state.missed > 0 ? "chip" : "chip ok");
      item.append(text("code", state.threshold.condition), " ", chip);
      return item;
    });
    const marks = document.createElement("ul");
    marks.append(...items);
    const note = text("p", "By the second; the record judges the whole measured time.", "chart-note");
    list.replaceChildren(text("h2", "Thresholds"), marks, note);
  }

  private drawTiles(): void {
    const { second: row, run, connected } = this.course;
    const several = row !== null && brokersOf(row).length > 0;
    const rss = row === null ? null : largest(row);
    const failures = this.course.failures;
    const tiles: [string, string, boolean?][] = [
      ...(row !== null && hasLogins(row) ? loginTiles(row) : messageTiles(row)),
      [thousands(connected), `of ${thousands(run?.clients ?? 0)} clients connected`],
      [thousands(failures), "failures of clients", failures > 0],
      [
        percent(row === null ? null : busiest(row)),
        several ? "CPU of the busiest broker, one core = 100 %" : "broker CPU, one core = 100 %",
      ],
      [
        rss === null ? "–" : bytes(rss),
        several ? "memory of the largest broker (RSS)" : "broker memory (RSS)",
      ],
    ];
    element("tiles").replaceChildren(...tiles.map(([value, name, bad]) => {
      const tile = text("div", "", bad ? "tile bad" : "tile");
      tile.append(text("b", value), text("span", name));
      return tile;
    }));
  }
}

function stepRow(step: StepNews): HTMLElement {
  const row = document.createElement("tr");
  const verdict = text("td", "");
  const chip = text("span", step.verdict.replaceAll("_", " "), "chip");
  if (step.verdict === "ok") chip.classList.add("ok");
  if (step.reason !== null) chip.title = step.reason;
  verdict.append(chip);
  row.append(
    text("th", step.label), verdict, text("td", step.tps === null ? "–" : rate(step.tps)),
    text("td", us(step.e2e_mean_us)), text("td", us(step.e2e_p99_us)),
    text("td", percent(step.cpu_percent)));
  return row;
}

function inWords({ threshold, seconds, missed, worst }: ThresholdState): string {
  if (seconds === 0 || worst === null) return "not measured by the second";
  const most = `worst ${show(worst, unitOf(threshold.figure))}`;
  return missed === 0 ? `holds, ${most}` : `missed in ${missed} of ${seconds} s, ${most}`;
}

function stopButton(page: Page): void {
  const button = element<HTMLButtonElement>("stop");
  const token = document.querySelector<HTMLMetaElement>('meta[name="tacho-token"]')?.content ?? "";
  const calm = () => {
    if (!button.classList.contains("sure")) return;
    button.classList.remove("sure");
    button.textContent = "Stop";
  };
  button.addEventListener("click", () => {
    if (!page.isOver && !button.classList.contains("sure")) {
      button.classList.add("sure");
      button.textContent = "Stop the run?";
      setTimeout(calm, CONFIRM_MS);
      return;
    }
    calm();
    button.disabled = true;
    const closing = page.isOver;
    fetch("/stop", { method: "POST", headers: { "x-tacho-token": token } })
      .then(async (answer) => {
        if (!answer.ok) throw new Error((await answer.text()).trim());
        page.notice(closing ? "Closed: the program has ended." : "Stopping: the report shows what was measured.");
      })
      .catch((error: unknown) => {
        button.disabled = false;
        const why = error instanceof Error ? error.message : String(error);
        page.notice(`Cannot stop the run: ${why}`);
      });
  });
}

const page = new Page();
follow("/events", page);
stopButton(page);
setInterval(() => page.drawProgress(), 500);
let width = document.documentElement.clientWidth;
window.addEventListener("resize", () => {
  if (document.documentElement.clientWidth === width) return;
  width = document.documentElement.clientWidth;
  page.resize();
});
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => page.recolour());
