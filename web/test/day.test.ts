// A page that is left open for a day, in virtual time.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Course } from "../src/course";
import type { HostNews, SecondNews } from "../src/news";

const DAY_S = 86_400;

function second(at: number): SecondNews {
  return {
    phase: at % 3_600 < 10 ? "warm-up" : "measure",
    length_s: 1,
    start_s: at,
    clients: 10,
    connected: 10,
    offered_in_per_s: 100,
    acked_per_s: 100,
    sent_per_s: 100,
    received_per_s: 100 + (at % 7),
    e2e_p50_us: 100,
    e2e_p99_us: 900 + (at % 100),
    disconnects: 0,
    parts: [
      { by: "broker", name: "a", connected: 5, sent_per_s: 50, received_per_s: 50 },
      { by: "broker", name: "b", connected: 5, sent_per_s: 50, received_per_s: 50 },
    ],
  } as unknown as SecondNews;
}

function host(at: number, name: string): HostNews {
  return {
    at_s: at,
    host: {
      host: name,
      source: "agent",
      target: null,
      cpu: { user: 1, nice: 0, system: 1, irq: 0, softirq: 0, iowait: 0, steal: 0, idle: 98 },
      load: null,
      memory: null,
      interfaces: [],
      disks: [],
      file_systems: [],
      // A process that is started anew every minute.
      processes: [
        { name: "broker", pid: Math.floor(at / 60), cpu_percent: 5, rss_bytes: 1_000_000 },
      ],
    },
  } as unknown as HostNews;
}

test("a live page that runs for a day keeps a bounded part of it", () => {
  const course = new Course();
  course.runBegan({
    number: 1,
    title: null,
    scenario: "soak",
    description: "",
    clients: 10,
    version: "5.0",
    brokers: [],
    at_s: 0,
    thresholds: [{ condition: "e2e_p99<1ms", figure: "e2e_p99", symbol: "<", limit: 1_000 }],
  });
  for (let at = 0; at < DAY_S; at += 1) {
    course.secondPassed(second(at));
    if (at % 5 === 0) course.hostRow(host(at + 0.5, "bench"));
    // Its name changes, as that of a container does.
    if (at % 600 === 0) course.hostRow(host(at + 0.7, `pod-${at}`));
    if (at % 10 === 0) course.failed({ count: at, sentence: `client ${at} was refused` });
    if (at % 20 === 0)
      course.stepEnded({
        number: at,
        label: `step ${at}`,
        verdict: "ok",
        reason: null,
        tps: 200,
        e2e_mean_us: 100,
        e2e_p99_us: 900,
        cpu_percent: 10,
      });
    if (at % 30 === 0)
      course.actions.update({
        run: 1,
        number: at,
        kind: "disconnect",
        what: "all break off",
        at_s: at,
        length_s: null,
        clients: 10,
        followed: "",
      });
  }
  const rows = course.sources.map((source) => source.rows.places.length);
  assert.ok(Math.max(...rows) <= 8_000, String(rows));
  const columns = course.sources.map((source) => source.rows.names().length);
  assert.ok(Math.max(...columns) <= 300, String(columns));
  assert.ok(course.sources.length <= 64, `${course.sources.length} sources`);
  assert.ok(course.bands.all.length <= 8_000);
  assert.ok(course.sentences.length <= 20 && course.steps.length <= 2_000);
  assert.ok(course.actions.all().length <= 1_000);
  // The latest is there, and what is counted is counted over all of it.
  assert.equal(course.sources[0]!.rows.places.at(-1), DAY_S);
  assert.equal(course.failures, DAY_S - 10);
  assert.equal(course.thresholds.all()[0]!.seconds, DAY_S - 24 * 10);
});
