import assert from "node:assert/strict";
import { test } from "node:test";

import { Actions } from "../src/actions";
import type { ActionNews, HostNews, SecondNews } from "../src/news";
import {
  RUN_PANELS, brokerPanels, brokersOf, busiest, chartData, groupPanels, hostPanels, largest,
  runPanels, shownName, valuesOf, valuesOfBroker, valuesOfGroups, valuesOfHost,
} from "../src/panels";
import { withoutDate } from "../src/format";
import { Intervals, Rows } from "../src/rows";

test("a run is called by its name and not by its date", () => {
  assert.equal(withoutDate("20261123-213902-symmetric"), "symmetric");
  assert.equal(withoutDate("20261123-213902-"), "20261123-213902-");
  assert.equal(withoutDate("of-my-own"), "of-my-own");
});

test("gaps interrupt lines, and repeated or late rows are ignored", () => {
  const rows = new Rows();
  rows.push(1, [["a", 5]]);
  rows.push(2, [["a", 6], ["b", 7]]);
  rows.push(2, [["a", 9]]);
  rows.push(1.5, [["a", 9]]);
  rows.push(10, [["b", 8]]);
  assert.deepEqual(rows.places, [1, 2, 2.001, 10]);
  assert.deepEqual(rows.column("a"), [5, 6, null, null]);
  assert.deepEqual(rows.column("b"), [null, 7, null, 8]);
  assert.deepEqual(rows.column("c"), [null, null, null, null]);
});

test("the oldest rows are dropped", () => {
  const rows = new Rows();
  for (let at = 0; at < 9000; at += 1) rows.push(at, [["a", at]]);
  assert.ok(rows.places.length > 7500 && rows.places.length <= 8000, `${rows.places.length}`);
  assert.equal(rows.column("a").length, rows.places.length);
  assert.equal(rows.column("a").at(-1), 8999);
  assert.equal(rows.column("a")[0], rows.places[0]);
});

test("phases of several runs are separate intervals", () => {
  const phases = new Intervals();
  phases.push(0, 1, "measure");
  phases.push(1, 2, "measure");
  phases.push(2, 2.1, "drain");
  phases.push(9, 10, "measure");
  phases.push(20, 21, "measure");
  assert.deepEqual(phases.all, [
    [0, 2, "measure"], [2, 2.1, "drain"], [9, 10, "measure"], [20, 21, "measure"],
  ]);
});

test("the latest state of each action is kept and marked", () => {
  const actions = new Actions();
  const action = (part: Partial<ActionNews>): ActionNews => ({
    run: 1, number: 0, kind: "disconnect", what: "all of a break off", at_s: 10, length_s: null,
    clients: 5, followed: "0 of 5 back", ...part,
  });
  actions.update(action({}));
  actions.update(action({ number: 1, kind: "pause", at_s: 12, length_s: 3 }));
  actions.update(action({ followed: "5 of 5 back" }));
  assert.deepEqual(actions.all().map(({ followed }) => followed), ["0 of 5 back", "5 of 5 back"]);
  assert.deepEqual(actions.bands(0, 100), [[10, 10.3, "disconnect"], [12, 15, "pause"]]);
  // Bands end with the axis.
  assert.deepEqual(actions.bands(0, 13)[1], [12, 13, "pause"]);
  for (let number = 0; number < 1000; number += 1) actions.update(action({ run: 2, number }));
  assert.equal(actions.all().length, 1000);
  assert.ok(actions.all().every(({ run }) => run === 2));
});

function second(part: Partial<SecondNews>): Map<string, number | null> {
  const row = { phase: "measure", length_s: 1, acked_per_s: 0, ...part } as SecondNews;
  return new Map(valuesOf(row));
}

test("a run that only logs in has charts of its logins instead of messages", () => {
  const titles = (part: Partial<SecondNews>) => {
    const rows = new Rows();
    rows.push(1, second(part));
    return runPanels(rows).map(({ title }) => title);
  };
  const logins = {
    login_accepted_per_s: 90, login_refused_per_s: 10, login_undecided_per_s: 0, login_p50_us: 300,
    login_p99_us: null, login_max_us: 900,
  };
  assert.deepEqual(titles({ sent_per_s: 0 }), RUN_PANELS.map(({ title }) => title));
  const only = titles({ ...logins, sent_per_s: 0, received_per_s: 0 });
  assert.deepEqual(only.slice(0, 2), ["Logins per second", "Login latency"]);
  assert.ok(!only.includes("Messages per second") && only.includes("Virtual users"));
  const both = titles({ ...logins, sent_per_s: 5 });
  assert.deepEqual(both.slice(0, 3), ["Logins per second", "Login latency", "Messages per second"]);
  const values = second(logins);
  assert.equal(values.get("logins refused"), 10);
  assert.equal(values.get("login p99"), null);
  assert.equal(shownName("logins refused"), "refused");
  assert.equal(shownName("login median"), "median");
});

test("groups have charts of their activity", () => {
  const part = (name: string, sent: number, received: number) =>
    ({ by: "group", name, connected: 5, sent_per_s: sent, received_per_s: received, rtt_p50_us: null });
  const row = { length_s: 1, parts: [part("pub", 50, 0), part("sub", 0, 50)] } as unknown as SecondNews;
  const rows = new Rows();
  rows.push(1, valuesOfGroups(row));
  const panels = groupPanels(rows);
  const names = ({ lines }: (typeof panels)[number]) => lines.map(({ name }) => shownName(name));
  const shown = panels.map((panel) => [panel.title, ...names(panel)]);
  assert.deepEqual(shown, [
    ["Messages that groups publish", "pub"],
    ["Messages that groups receive", "sub"],
    ["Clients connected", "pub", "sub"],
  ]);
  assert.deepEqual(rows.column("in pub"), [50]);
  assert.deepEqual(valuesOfGroups({ length_s: 1 } as SecondNews), []);
});

test("each of several brokers has charts of its known values", () => {
  const part = { by: "broker", name: "a", connected: 5, sent_per_s: 50, received_per_s: 40, rtt_p50_us: 70 };
  const row = {
    length_s: 1, broker_cpu_percent: 1, broker_rss_bytes: 2,
    parts: [
      part,
      { ...part, name: "b", cpu_percent: 30, rss_bytes: 100, bridged_out_per_s: 50, bridge_waiting: 0 },
    ],
  } as unknown as SecondNews;
  const titles = (index: number) => {
    const rows = new Rows();
    rows.push(1, valuesOfBroker(row, brokersOf(row)[index]!));
    return brokerPanels(rows).map(({ title, lines }) => [title, lines.length]);
  };
  assert.deepEqual(titles(0), [
    ["Messages in and out", 2], ["Round trip to the broker", 1], ["Connections", 1],
  ]);
  assert.deepEqual(titles(1), [
    ["Messages in and out", 3], ["CPU of the broker", 1], ["Memory of the broker", 1],
    ["Round trip to the broker", 1], ["Connections", 1], ["Messages that wait in its bridges", 1],
  ]);
  assert.deepEqual([busiest(row), largest(row)], [30, 100]);
  const alone = { ...row, parts: [] } as unknown as SecondNews;
  assert.deepEqual([busiest(alone), largest(alone)], [1, 2]);
});

test("every line of the run has values", () => {
  const values = second({});
  for (const panel of RUN_PANELS) {
    for (const { name } of panel.lines) assert.ok(values.has(name), `${panel.title}: ${name}`);
  }
});

test("rates of short remainders are omitted, counts are not", () => {
  const whole = second({ sent_per_s: 100, acked_per_s: 90, connected: 7 });
  assert.equal(whole.get("in, sent"), 100);
  assert.equal(whole.get("in, acknowledged"), 90);
  const rest = second({ sent_per_s: 100, acked_per_s: 90, connected: 7, length_s: 0.1 });
  assert.equal(rest.get("in, sent"), null);
  assert.equal(rest.get("in, acknowledged"), null);
  assert.equal(rest.get("connected"), 7);
  assert.equal(second({ sent_per_s: 5 }).get("in, acknowledged"), null);
});

test("a host has charts of the values of its source", () => {
  const row = (lo: number): HostNews => ({
    at_s: 1,
    host: {
      host: "h", source: "local", target: null, cpu: null, load: [1, 2, 3], memory: null,
      interfaces: [
        { name: "lo", rx_bytes_per_s: lo, tx_bytes_per_s: lo },
        { name: "eth0", rx_bytes_per_s: 0, tx_bytes_per_s: 0 },
      ],
      disks: [{
        name: "sda", read_bytes_per_s: 0, written_bytes_per_s: lo, reads_per_s: 0, writes_per_s: lo,
        busy_percent: lo, read_wait_us: null, write_wait_us: lo,
      }],
      file_systems: [{ mount_point: "/", used: 30, available: 70 }],
      processes: [{ name: "broker", pid: 7, cpu_percent: 50, rss_bytes: 100 }],
    },
  });
  const rows = new Rows();
  rows.push(1, valuesOfHost(row(0)));
  const titles = () => hostPanels(rows).map((panel) => panel.title);
  assert.deepEqual(titles(), ["Load", "Disk space", "CPU of processes", "Memory of processes"]);
  rows.push(2, valuesOfHost(row(9)));
  assert.deepEqual(titles(), [
    "Network", "Load", "Disk traffic", "Disk operations", "Disks busy", "Time of a disk operation",
    "Disk space", "CPU of processes", "Memory of processes",
  ]);
  const disk = hostPanels(rows)[2]!;
  assert.deepEqual(disk.lines.map(({ name }) => shownName(name)), ["sda written"]);
  assert.deepEqual(chartData(hostPanels(rows)[6]!, rows, [0, 30], []).lines[0]!.values, [30, 30]);
  const network = hostPanels(rows)[0]!;
  assert.deepEqual(network.lines.map(({ name }) => shownName(name)), ["lo in", "lo out"]);
  const chart = chartData(network, rows, [0, 30], []);
  assert.deepEqual(chart.lines[0]!.values, [0, 9]);
});
