// The live page of a run.

import { Actions } from "./actions";
import { Board } from "./figures";
import { latency, rate, thousands, bytes, withoutDate } from "./format";
import type {
  ActionNews, EndNews, FailedNews, Hello, HostNews, PhaseNews, RunNews, SecondNews, StepNews,
} from "./news";
import type { Panel } from "./panels";
import {
  RUN_PANELS, brokerPanels, brokersOf, busiest, groupPanels, hasLoad, hostPanels, largest, valuesOf,
  valuesOfBroker, valuesOfGroups, valuesOfHost,
} from "./panels";
import { Intervals, Rows } from "./rows";

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

function percent(value: number | null): string {
  return value === null ? "–" : `${value.toFixed(0)} %`;
}

class Page {
  private rows = new Rows();
  private bands = new Intervals();
  private actions = new Actions();
  private run: RunNews | null = null;
  private phase: PhaseNews | null = null;
  private end: EndNews | null = null;
  private second: SecondNews | null = null;
  private failures = 0;
  private connected = 0;
  private boards: Board[] = [];
  // The rows of hosts, groups and each of several brokers.
  private sources = new Map<string, Rows>();
  // The page's clock: the end of the latest row, and when it was received.
  private now = { at: 0, receivedAt: performance.now() };
  private isDrawPending = false;
  private missed = 0;
  private name = "";

  hello(hello: Hello): void {
    this.rows = new Rows();
    this.bands = new Intervals();
    this.actions = new Actions();
    this.sources = new Map();
    this.boards = [];
    this.missed = 0;
    element("charts").replaceChildren();
    element("steps").querySelector("tbody")?.replaceChildren();
    element("failures").querySelector("ul")?.replaceChildren();
    element("steps").hidden = true;
    element("actions").hidden = true;
    element("failures").hidden = true;
    this.addBoard("", this.rows, () => RUN_PANELS);
    const name = withoutDate(hello.name);
    document.title = `${name} - Tacho`;
    element("name").textContent = name;
    this.name = hello.name;
    element("kind").textContent = hello.kind === "run" ? "Live run" : `Live ${hello.kind}`;
    element<HTMLButtonElement>("stop").disabled = false;
    this.notice("");
    if (hello.forgotten > 0) {
      this.notice(`The first ${thousands(hello.forgotten)} rows are only in the run's files.`);
    }
    if (hello.run !== null) this.begin(hello.run);
    this.phase = hello.phase;
    hello.failures.forEach((sentence, index) => {
      const count = hello.failures_count - hello.failures.length + index + 1;
      this.failed({ count, sentence });
    });
    hello.actions.forEach((action) => this.actions.update(action));
    this.drawActions();
    hello.steps.forEach((step) => this.step(step));
    if (hello.end !== null) this.ended(hello.end);
    this.draw();
  }

  begin(run: RunNews): void {
    this.run = run;
    this.phase = null;
    this.second = null;
    this.tick(run.at_s);
    element("description").textContent = run.description;
    const facts = [
      this.name, ...(run.title === null ? [] : [run.scenario]),
      `${thousands(run.clients)} clients`, `MQTT ${run.version}`, ...run.brokers,
    ];
    element("facts").replaceChildren(...facts.map((fact) => text("span", fact)));
    element("title").textContent = run.title ?? "";
  }

  phaseBegan(phase: PhaseNews): void {
    this.phase = phase;
    this.tick(phase.at_s);
    this.draw();
  }

  secondPassed(row: SecondNews): void {
    // After the load has ended, its last figures stay.
    if (this.second === null || row.length_s >= 0.5 && (hasLoad(row) || !hasLoad(this.second))) {
      this.second = row;
    }
    this.connected = row.connected;
    const end = row.start_s + row.length_s;
    this.tick(end);
    this.rows.push(end, valuesOf(row));
    this.bands.push(row.start_s, end, row.phase);
    const groups = valuesOfGroups(row);
    if (groups.length > 0) this.source("groups", "Groups", groupPanels).push(end, groups);
    for (const part of brokersOf(row)) {
      const heading = `Broker ${part.name === "" ? "default" : part.name}`;
      this.source(`broker ${part.name}`, heading, brokerPanels)
        .push(end, valuesOfBroker(row, part));
    }
    this.draw();
  }

  hostRow(row: HostNews): void {
    const { host, source, target } = row.host;
    const broker = target === null ? "" : `, broker ${target}`;
    const name = host === "" ? source : `${host} (${source}${broker})`;
    this.source(`host ${source} ${target ?? ""} ${host}`, `Host ${name}`, hostPanels)
      .push(row.at_s, valuesOfHost(row));
    this.draw();
  }

  // The rows of a source; the first call adds its board.
  private source(key: string, heading: string, panels: (rows: Rows) => Panel[]): Rows {
    const known = this.sources.get(key);
    if (known !== undefined) return known;
    const rows = new Rows();
    this.sources.set(key, rows);
    this.addBoard(heading, rows, () => panels(rows));
    return rows;
  }

  private addBoard(heading: string, rows: Rows, panels: () => Panel[]): void {
    this.boards.push(
      new Board(element("charts"), heading, rows, this.bands, this.actions, panels));
  }

  failed(news: FailedNews): void {
    this.failures = news.count;
    const section = element("failures");
    section.hidden = false;
    const list = section.querySelector("ul");
    list?.append(text("li", news.sentence));
    while (list !== null && list.childElementCount > 20) list.firstElementChild?.remove();
    this.draw();
  }

  actionProgressed(action: ActionNews): void {
    this.actions.update(action);
    this.drawActions();
    this.draw();
  }

  step(step: StepNews): void {
    // The table of a single run would only repeat the verdict.
    const section = element("steps");
    section.hidden = element("kind").textContent === "Live run";
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
    section.querySelector("tbody")?.append(row);
  }

  ended(end: EndNews): void {
    this.end = end;
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
    this.draw();
  }

  lost(rows: number): void {
    this.missed += rows;
    const lost = thousands(this.missed);
    this.notice(`This page was too slow for ${lost} rows: reload it to see them.`);
  }

  notice(sentence: string): void {
    const notice = element("notice");
    notice.textContent = sentence;
    notice.hidden = sentence === "";
  }

  // Schedules one redraw for all events received until then.
  draw(): void {
    if (this.isDrawPending) return;
    this.isDrawPending = true;
    requestAnimationFrame(() => {
      this.isDrawPending = false;
      this.drawNow();
    });
  }

  drawNow(): void {
    this.drawProgress();
    this.drawTiles();
    for (const board of this.boards) board.draw();
  }

  drawProgress(): void {
    const { phase } = this;
    const bar = element<HTMLProgressElement>("bar");
    if (this.end !== null) {
      element("phase").textContent = "ended";
      element("time").textContent = "";
      bar.value = 1;
      return;
    }
    if (phase === null) {
      element("phase").textContent = "getting ready";
      element("time").textContent = "";
      bar.removeAttribute("value");
      return;
    }
    const since = Math.min((performance.now() - this.now.receivedAt) / 1000, 2);
    const done = Math.max(this.now.at + since - phase.at_s, 0);
    element("phase").textContent = phase.name;
    const of = `phase ${phase.number} of ${phase.of}`;
    if (phase.planned_s === null) {
      element("time").textContent = `${of}, ${done.toFixed(0)} s`;
      bar.removeAttribute("value");
    } else {
      const shown = Math.min(done, phase.planned_s);
      element("time").textContent = `${of}, ${shown.toFixed(0)} of ${phase.planned_s} s`;
      bar.value = phase.planned_s > 0 ? shown / phase.planned_s : 1;
    }
  }

  resize(): void {
    for (const board of this.boards) board.resize();
  }

  recolour(): void {
    for (const board of this.boards) board.recolour();
  }

  get isOver(): boolean {
    return this.end !== null;
  }

  private tick(at: number): void {
    if (at >= this.now.at || at === 0) this.now = { at, receivedAt: performance.now() };
  }

  private drawActions(): void {
    const all = this.actions.all();
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

  private drawTiles(): void {
    const row = this.second;
    const several = row !== null && brokersOf(row).length > 0;
    const rss = row === null ? null : largest(row);
    const failures = this.failures > 0 ? thousands(this.failures) : "0";
    const tiles: [string, string, boolean?][] = [
      [row === null ? "–" : rate(row.sent_per_s), "messages per second in"],
      [row === null ? "–" : rate(row.received_per_s), "messages per second out"],
      [us(row?.e2e_p50_us ?? null), "median latency, end to end"],
      [us(row?.e2e_p99_us ?? null), "99th percentile"],
      [
        thousands(this.connected),
        `of ${thousands(this.run?.clients ?? 0)} clients connected`,
      ],
      [failures, "failures of clients", this.failures > 0],
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

function listen(page: Page): void {
  const source = new EventSource("/events");
  const on = <T>(kind: string, take: (news: T) => void) => {
    source.addEventListener(kind, (event) => {
      take(JSON.parse((event as MessageEvent<string>).data) as T);
    });
  };
  on<Hello>("hello", (news) => page.hello(news));
  on<RunNews>("run", (news) => page.begin(news));
  on<PhaseNews>("phase", (news) => page.phaseBegan(news));
  on<SecondNews>("second", (news) => page.secondPassed(news));
  on<HostNews>("host", (news) => page.hostRow(news));
  on<FailedNews>("failed", (news) => page.failed(news));
  on<ActionNews>("action", (news) => page.actionProgressed(news));
  on<StepNews>("step", (news) => page.step(news));
  on<EndNews>("end", (news) => page.ended(news));
  on<number>("missed", (rows) => page.lost(rows));
  // `ready` follows the history, and nothing follows the end: do not reconnect.
  const close = () => {
    if (page.isOver) source.close();
  };
  source.addEventListener("ready", close);
  source.addEventListener("end", close);
  // Who reconnected would displace another page in turn.
  source.addEventListener("displaced", () => {
    source.close();
    element<HTMLButtonElement>("stop").disabled = true;
    page.notice("Another page has taken this one's place: too many are open. Reload to watch again.");
  });
  source.addEventListener("error", () => {
    if (page.isOver) return;
    element<HTMLButtonElement>("stop").disabled = true;
    page.notice(
      source.readyState === EventSource.CLOSED
        ? "The run cannot be watched: it has ended. Reload to try again."
        : "No connection to the run; reconnecting.");
  });
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
listen(page);
stopButton(page);
setInterval(() => page.drawProgress(), 500);
let width = document.documentElement.clientWidth;
window.addEventListener("resize", () => {
  if (document.documentElement.clientWidth === width) return;
  width = document.documentElement.clientWidth;
  page.resize();
});
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => page.recolour());
