import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Course } from "../src/course";
import { translated, wordsOf } from "../src/console/i18n";
import { agentCells } from "../src/agents";
import type { AgentNews, HostNews, RunNews, SecondNews, ThresholdNews } from "../src/news";
import { RUN_PANELS, chartData, groupPanels, hostPanels, runPanels, shownName } from "../src/panels";
import { Rows } from "../src/rows";
import { chosen } from "../src/table";
import { Thresholds, figureOf, holds, unitOf } from "../src/thresholds";
import { TimeWindow } from "../src/window";

const second = (part: Partial<SecondNews>): SecondNews =>
  ({
    phase: "measure",
    length_s: 1,
    start_s: 0,
    acked_per_s: 0,
    sent_per_s: 0,
    received_per_s: 0,
    connected: 5,
    clients: 5,
    disconnects: 0,
    ...part,
  }) as SecondNews;
const p99: ThresholdNews = {
  condition: "e2e_p99<10ms",
  figure: "e2e_p99",
  symbol: "<",
  limit: 10_000,
};

test("thresholds are held against the seconds of the measured phase", () => {
  const watch = new Thresholds();
  watch.begin([p99, { condition: "tps>=100", figure: "tps", symbol: ">=", limit: 100 }]);
  watch.push(second({ phase: "warm-up", e2e_p99_us: 99_000 }));
  watch.push(second({ length_s: 0.2, e2e_p99_us: 99_000 }));
  watch.push(second({ e2e_p99_us: 5_000, sent_per_s: 60, received_per_s: 60 }));
  watch.push(second({ e2e_p99_us: 14_000, sent_per_s: 30, received_per_s: 60 }));
  watch.push(second({ e2e_p99_us: 7_000, acked_per_s: 50, sent_per_s: 1, received_per_s: 60 }));
  const seen = watch
    .all()
    .map(({ seconds, missed, latest, worst }) => [seconds, missed, latest, worst]);
  assert.deepEqual(seen, [
    [3, 1, 7_000, 14_000],
    [3, 1, 110, 90],
  ]);
});

test("figures without values by the second are not judged", () => {
  const watch = new Thresholds();
  watch.begin([{ condition: "lost==0", figure: "lost", symbol: "==", limit: 0 }]);
  watch.push(second({}));
  assert.equal(watch.all()[0]!.seconds, 0);
  assert.equal(figureOf("unknown", second({})), null);
  assert.ok(holds({ ...p99, symbol: "<=" }, 10_000) && !holds(p99, 10_000));
  assert.deepEqual(["e2e_p999", "tps", "broker_rss", "cpu", "lost"].map(unitOf), [
    "latency",
    "rate",
    "bytes",
    "percent",
    "number",
  ]);
});

test("a threshold is a line in each chart of its figure", () => {
  const titles = RUN_PANELS.filter(
    (panel) => chartData(panel, new Rows(), [0, 1], [], [p99]).marks.length > 0,
  ).map(({ title }) => title);
  assert.deepEqual(titles, ["End-to-end delivery", "Response time, 99th percentile"]);
  const drawn = chartData(RUN_PANELS[1]!, new Rows(), [0, 1], [], [p99]);
  assert.deepEqual(drawn.marks, [{ x: null, y: 10_000, name: "e2e_p99<10ms", colour: 0 }]);
});

test("agents are shown as they were in the last second under load", () => {
  const agent = (sent: number): AgentNews => ({
    name: "load-1", clients: 1_000, sent_per_s: sent, received_per_s: 0, bytes_out_per_s: 2_000,
    bytes_in_per_s: 48, send_delay_us: { p99: 1_500 }, threads_cpu_percent: 12.25,
    thread_busy_max_percent: 7, cpu_percent: null, retransmits_per_s: 0.5, bus_up_bytes_per_s: null,
    bus_down_bytes_per_s: 3,
  });
  const course = new Course();
  course.agentsReported([agent(0)]);
  assert.equal(course.agents.length, 1);
  course.agentsReported([agent(500)]);
  course.agentsReported([agent(0)]);
  assert.deepEqual(agentCells(course.agents[0]!), {
    clients: "1,000", sent: "500", received: "0.0", network: "2.0 KiB/s", cpu: "12.3 %",
    busiest: "7.0 %", late: "1.50 ms", resent: "0.5", bus: "–",
  });
});

test("a course keeps the state that its first event tells, and adds sources as they come", () => {
  const course = new Course();
  const run = {
    number: 1,
    title: null,
    scenario: "s",
    clients: 5,
    at_s: 0,
    thresholds: [p99],
  } as unknown as RunNews;
  course.begin({
    name: "n",
    kind: "run",
    run,
    phase: null,
    failures: ["b"],
    failures_count: 7,
    actions: [],
    steps: [],
    end: null,
    forgotten: 0,
    overflow: 0,
  });
  assert.deepEqual(
    [course.failures, course.sentences, course.thresholds.conditions().length],
    [7, ["b"], 1],
  );
  const group = {
    by: "group",
    name: "pub",
    connected: 1,
    sent_per_s: 5,
    received_per_s: 0,
    rtt_p50_us: null,
  } as const;
  course.secondPassed(second({ parts: [group] }));
  course.secondPassed(second({ start_s: 1, parts: [group] }));
  course.hostRow({
    at_s: 1,
    host: {
      host: "h",
      source: "local",
      target: null,
      cpu: null,
      load: [1, 2, 3],
      memory: null,
      interfaces: [],
      disks: [],
      file_systems: [],
      processes: [],
    },
  } as HostNews);
  assert.deepEqual(
    course.sources.map(({ of, name, rows }) => [of, name, rows.places.length]),
    [
      ["run", "", 2],
      ["groups", "", 2],
      ["host", "h (local)", 1],
    ],
  );
  for (let index = 0; index < 30; index += 1)
    course.failed({ count: index, sentence: String(index) });
  assert.equal(course.sentences.length, 20);
});

test("the last figures of the load stay after it", () => {
  const course = new Course();
  course.secondPassed(second({ sent_per_s: 50 }));
  course.secondPassed(second({ phase: "drain", start_s: 1, sent_per_s: 0 }));
  assert.equal(course.second?.sent_per_s, 50);
});

test("a window is told once, and only when it changes", () => {
  const window = new TimeWindow();
  const told: unknown[] = [];
  const end = window.subscribe((range) => told.push(range));
  window.select(null);
  window.select([1, 2]);
  window.select([1 + 1e-9, 2]);
  window.select(null);
  end();
  window.select([3, 4]);
  assert.deepEqual(told, [[1, 2], null]);
});

test("tables of values are thinned out evenly within the window", () => {
  const places = Array.from({ length: 1000 }, (_, index) => index);
  assert.equal(chosen(places, null, 50).length, 50);
  assert.deepEqual(chosen(places, [10, 13], 50), [10, 11, 12, 13]);
});

test("every word of the charts has a Chinese one", () => {
  const texts = wordsOf("zh").labels.charts;
  const rows = new Rows();
  rows.push(1, [
    ["net eth0 in", 1],
    ["disk traffic sda read", 1],
    ["disk operations sda reads", 1],
    ["in pub", 1],
    ["1 min", 1],
    ["user", 1],
    ["used", 1],
    ["disk busy sda", 1],
    ["disk wait sda write", 1],
    ["logins accepted", 1],
  ]);
  const ofRuns = [...RUN_PANELS, ...runPanels(rows)];
  const panels = [...ofRuns, ...hostPanels(rows), ...groupPanels(rows)];
  const fixed = panels.flatMap(({ title, note, axis }) => [
    title,
    axis,
    ...(note === undefined ? [] : [note]),
  ]);
  const lines = ofRuns.flatMap((panel) => panel.lines.map(({ name }) => shownName(name)));
  for (const text of [...fixed, ...lines]) assert.ok(text in texts, text);
  assert.equal(translated(texts, "eth0 in"), "eth0 流入");
  assert.equal(translated(texts, "anything else"), "anything else");
});

test("the console has the colours of the report", () => {
  const colours = (css: string, begin: string) => {
    const from = css.indexOf(begin);
    const block = css.slice(from, css.indexOf("}", from));
    return new Map(
      [...block.matchAll(/(--[a-z0-9-]+): ([^;]+);/g)].map(([, name, value]) => [name, value]),
    );
  };
  const report = readFileSync("src/style.css", "utf8");
  const console = readFileSync("src/console/themes.css", "utf8");
  const dark = report.slice(report.indexOf("prefers-color-scheme: dark"));
  for (const [css, begin, theme] of [
    [report, ":root {", "light"],
    [dark, ":root {", "dark"],
  ] as const) {
    const own = colours(console, `:root[data-theme="${theme}"]`);
    const known = colours(css, begin);
    assert.ok(known.size > 20);
    for (const [name, value] of known) assert.equal(own.get(name), value, `${theme} ${name}`);
  }
});
