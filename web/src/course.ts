// The course of a run, as its events tell it; pages draw it.

import { Actions } from "./actions";
import type {
  ActionNews,
  AgentNews,
  EndNews,
  FailedNews,
  Hello,
  HostNews,
  PhaseNews,
  RunNews,
  SecondNews,
  StepNews,
} from "./news";
import type { Panel } from "./panels";
import {
  brokerPanels,
  brokersOf,
  groupPanels,
  hasLoad,
  hostPanels,
  runPanels,
  valuesOf,
  valuesOfBroker,
  valuesOfGroups,
  valuesOfHost,
} from "./panels";
import { Intervals, Rows } from "./rows";
import { Thresholds } from "./thresholds";

// Sentences about failures and steps that are kept; the oldest are dropped first.
const SENTENCES_MAX = 20;
const STEPS_MAX = 2000;
// Brokers and hosts with charts; rows of further ones are left out.
const SOURCES_MAX = 64;

// Rows that have charts of their own.
export interface Source {
  of: "run" | "groups" | "broker" | "host";
  // Of a broker or a host.
  name: string;
  rows: Rows;
  panels: () => Panel[];
}

export class Course {
  readonly bands = new Intervals();
  readonly actions = new Actions();
  readonly thresholds = new Thresholds();
  readonly sources: Source[] = [];
  readonly steps: StepNews[] = [];
  // The latest sentences about failed clients.
  readonly sentences: string[] = [];
  hello: Hello | null = null;
  run: RunNews | null = null;
  phase: PhaseNews | null = null;
  end: EndNews | null = null;
  // The agents' parts of the last second under load; none without agents.
  agents: AgentNews[] = [];
  // The second whose figures are shown.
  second: SecondNews | null = null;
  failures = 0;
  connected = 0;
  // Rows that this page was too slow for.
  missed = 0;
  private readonly rows = new Rows();
  private readonly known = new Map<string, Source>();
  // The clock of the run: the end of the latest row, and when it was received.
  private clock = { at: 0, receivedAt: performance.now() };

  constructor() {
    this.sources.push({ of: "run", name: "", rows: this.rows, panels: () => runPanels(this.rows) });
  }

  // The first event has the state so far.
  begin(hello: Hello): void {
    this.hello = hello;
    if (hello.run !== null) this.runBegan(hello.run);
    this.phase = hello.phase;
    this.agents = hello.agents ?? [];
    hello.failures.forEach((sentence, index) => {
      const count = hello.failures_count - hello.failures.length + index + 1;
      this.failed({ count, sentence });
    });
    hello.actions.forEach((action) => this.actions.update(action));
    hello.steps.forEach((step) => this.stepEnded(step));
    if (hello.end !== null) this.ended(hello.end);
  }

  runBegan(run: RunNews): void {
    this.run = run;
    this.phase = null;
    this.agents = [];
    this.second = null;
    this.thresholds.begin(run.thresholds ?? []);
    this.tick(run.at_s);
  }

  phaseBegan(phase: PhaseNews): void {
    this.phase = phase;
    this.tick(phase.at_s);
  }

  secondPassed(row: SecondNews): void {
    // After the load has ended, its last figures stay.
    if (this.second === null || (row.length_s >= 0.5 && (hasLoad(row) || !hasLoad(this.second)))) {
      this.second = row;
    }
    this.connected = row.connected;
    const end = row.start_s + row.length_s;
    this.tick(end);
    this.thresholds.push(row);
    this.rows.push(end, valuesOf(row));
    this.bands.push(row.start_s, end, row.phase);
    const groups = valuesOfGroups(row);
    if (groups.length > 0) this.source("groups", "groups", "", groupPanels).rows.push(end, groups);
    for (const part of brokersOf(row)) {
      const name = part.name === "" ? "default" : part.name;
      this.source(`broker ${part.name}`, "broker", name, brokerPanels).rows.push(
        end,
        valuesOfBroker(row, part),
      );
    }
  }

  agentsReported(agents: AgentNews[]): void {
    // After the load has ended, its last figures stay.
    const isLoaded = agents.some((agent) => agent.sent_per_s + agent.received_per_s > 0);
    if (isLoaded || this.agents.length === 0) this.agents = agents;
  }

  hostRow(row: HostNews): void {
    const { host, source, target } = row.host;
    const broker = target === null ? "" : `, broker ${target}`;
    const name = host === "" ? source : `${host} (${source}${broker})`;
    this.source(`host ${source} ${target ?? ""} ${host}`, "host", name, hostPanels).rows.push(
      row.at_s,
      valuesOfHost(row),
    );
  }

  failed(news: FailedNews): void {
    this.failures = news.count;
    this.sentences.push(news.sentence);
    while (this.sentences.length > SENTENCES_MAX) this.sentences.shift();
  }

  stepEnded(step: StepNews): void {
    this.steps.push(step);
    while (this.steps.length > STEPS_MAX) this.steps.shift();
  }

  ended(end: EndNews): void {
    this.end = end;
  }

  // Seconds since the phase began, by the clock of the run.
  phaseSeconds(): number {
    if (this.phase === null) return 0;
    const since = Math.min((performance.now() - this.clock.receivedAt) / 1000, 2);
    return Math.max(this.clock.at + since - this.phase.at_s, 0);
  }

  // How much of the phase is over; null where that is not known.
  phaseShare(): number | null {
    const planned = this.phase?.planned_s ?? null;
    if (planned === null) return null;
    return planned > 0 ? Math.min(this.phaseSeconds() / planned, 1) : 1;
  }

  private source(
    key: string,
    of: Source["of"],
    name: string,
    panels: (rows: Rows) => Panel[],
  ): Source {
    const known = this.known.get(key);
    if (known !== undefined) return known;
    const rows = new Rows();
    const source = { of, name, rows, panels: () => panels(rows) };
    if (this.sources.length >= SOURCES_MAX) return source;
    this.known.set(key, source);
    this.sources.push(source);
    return source;
  }

  private tick(at: number): void {
    if (at >= this.clock.at || at === 0) this.clock = { at, receivedAt: performance.now() };
  }
}

// What a page does with the events besides keeping the course.
export interface Watcher {
  // A new course has begun: the stream begins, or begins anew after a lost connection.
  began: (course: Course) => void;
  changed: (kind: string) => void;
  // The history is complete.
  ready: () => void;
  displaced: () => void;
  lost: (forGood: boolean) => void;
}

// Follows the events of a run; the returned function ends that.
export function follow(address: string, watcher: Watcher): () => void {
  const source = new EventSource(address);
  let course = new Course();
  const on = <T>(kind: string, take: (news: T) => void) => {
    source.addEventListener(kind, (event) => {
      take(JSON.parse((event as MessageEvent<string>).data) as T);
      watcher.changed(kind);
    });
  };
  on<Hello>("hello", (news) => {
    course = new Course();
    course.begin(news);
    watcher.began(course);
  });
  on<RunNews>("run", (news) => course.runBegan(news));
  on<PhaseNews>("phase", (news) => course.phaseBegan(news));
  on<SecondNews>("second", (news) => course.secondPassed(news));
  on<AgentNews[]>("agents", (news) => course.agentsReported(news));
  on<HostNews>("host", (news) => course.hostRow(news));
  on<FailedNews>("failed", (news) => course.failed(news));
  on<ActionNews>("action", (news) => course.actions.update(news));
  on<StepNews>("step", (news) => course.stepEnded(news));
  on<EndNews>("end", (news) => course.ended(news));
  on<number>("missed", (rows) => {
    course.missed += rows;
  });
  // `ready` follows the history, and nothing follows the end: do not reconnect.
  const close = () => {
    if (course.end !== null) source.close();
  };
  source.addEventListener("ready", () => {
    watcher.ready();
    close();
  });
  source.addEventListener("end", close);
  // A page that reconnected would displace another one in turn.
  source.addEventListener("displaced", () => {
    source.close();
    watcher.displaced();
  });
  // The run goes on, and nothing tells how.
  source.addEventListener("without", () => {
    source.close();
    watcher.lost(true);
  });
  source.addEventListener("error", () => {
    if (course.end === null) watcher.lost(source.readyState === EventSource.CLOSED);
  });
  return () => source.close();
}
