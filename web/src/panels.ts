// The charts of a live run: the lines of each chart and their values.

import type { ChartData, LineData, Unit } from "./data";
import type { CpuState, HostNews, PartNews, SecondNews, ThresholdNews } from "./news";
import type { Rows } from "./rows";

export interface PanelLine {
  // The column of the rows; the legend shows `shownName` of it.
  name: string;
  class: string;
}

export interface Panel {
  title: string;
  note?: string;
  axis: string;
  unit: Unit;
  log?: boolean;
  stacked?: boolean;
  // The end of the axis, if it is fixed.
  to?: number;
  wide?: boolean;
  lines: PanelLine[];
  // Figures whose thresholds are drawn as lines.
  figures?: string[];
}

function lines(...of: [name: string, cls: string][]): PanelLine[] {
  return of.map(([name, cls]) => ({ name, class: cls }));
}

const MESSAGE_PANELS: Panel[] = [
  {
    title: "Messages per second",
    axis: "messages per second",
    unit: "rate",
    wide: true,
    lines: lines(["due", "reference"], ["in, sent", "c1"], ["in, acknowledged", "c3"], ["out, delivered", "c2"]),
  },
  {
    title: "End-to-end delivery",
    axis: "latency",
    unit: "latency",
    log: true,
    figures: ["e2e_p50", "e2e_p95", "e2e_p99", "e2e_max"],
    lines: lines(["e2e median", "c1"], ["e2e p95", "c3"], ["e2e p99", "c2"], ["e2e max", "c4"]),
  },
];

const LOGIN_PANELS: Panel[] = [
  {
    title: "Logins per second",
    axis: "logins per second",
    unit: "rate",
    wide: true,
    lines: lines(["logins accepted", "c3"], ["logins refused", "c2"], ["logins undecided", "c4"]),
  },
  {
    title: "Login latency",
    axis: "latency",
    unit: "latency",
    log: true,
    figures: ["login_p50", "login_p99", "login_max"],
    lines: lines(["login median", "c1"], ["login p99", "c2"], ["login max", "c4"]),
  },
];

const OTHER_PANELS: Panel[] = [
  {
    title: "Response time, mean",
    axis: "time",
    unit: "latency",
    figures: ["connect_mean", "ack_mean", "e2e_mean"],
    lines: lines(
      ["connect", "c4 points"], ["subscribe", "c6 points"], ["publish acknowledged", "c3"],
      ["end to end", "c1"],
    ),
  },
  {
    title: "Response time, 99th percentile",
    note: "A second needs 1,000 samples for it.",
    axis: "time",
    unit: "latency",
    figures: ["connect_p99", "ack_p99", "e2e_p99"],
    lines: lines(
      ["connect p99", "c4 points"], ["subscribe p99", "c6 points"], ["publish acknowledged p99", "c3"],
      ["end to end p99", "c1"],
    ),
  },
  {
    title: "Failures per second",
    axis: "failures per second",
    unit: "rate",
    lines: lines(
      ["failed connects", "c4"], ["failed subscribes", "c6"], ["failed publishes", "c3"],
      ["lost connections", "c2"],
    ),
  },
  {
    title: "Virtual users",
    axis: "clients",
    unit: "number",
    lines: lines(["clients of the scenario", "reference"], ["connected", "c1"]),
  },
  {
    title: "Bytes per second of the clients",
    axis: "bytes per second",
    unit: "bytes_per_s",
    lines: lines(["read", "c2"], ["written", "c1"]),
  },
  {
    title: "CPU of broker and generator",
    note: "With several brokers, the busiest.",
    axis: "one core = 100 %",
    unit: "percent",
    figures: ["broker_cpu"],
    lines: lines(["broker", "c1"], ["generator", "c3"]),
  },
  {
    title: "Round trip to the broker",
    axis: "time",
    unit: "latency",
    figures: ["rtt_p50", "rtt_max"],
    lines: lines(["round trip median", "c1"], ["round trip max", "c4"]),
  },
];

export const RUN_PANELS: Panel[] = [...MESSAGE_PANELS, ...OTHER_PANELS];

// The charts of all clients. A run with logins has charts of them, and of messages only if there
// are any.
export function runPanels(rows: Rows): Panel[] {
  if (!rows.names().includes("logins accepted")) return RUN_PANELS;
  const hasMessages = rows.hasNonZero("in, sent") || rows.hasNonZero("out, delivered");
  return [...LOGIN_PANELS, ...(hasMessages ? MESSAGE_PANELS : []), ...OTHER_PANELS];
}

// True when clients publish in the phase of this second.
export function hasLoad(row: SecondNews): boolean {
  return row.phase === "warm-up" || row.phase === "measure";
}

// The rows of each broker, where there are several.
export function brokersOf(row: SecondNews): PartNews[] {
  return (row.parts ?? []).filter(({ by }) => by === "broker");
}

// CPU of the broker; of several, the busiest.
export function busiest(row: SecondNews): number | null {
  const known = brokersOf(row).flatMap(({ cpu_percent }) => cpu_percent ?? []);
  return known.length > 0 ? Math.max(...known) : row.broker_cpu_percent;
}

// Memory of the broker; of several, the largest.
export function largest(row: SecondNews): number | null {
  const known = brokersOf(row).flatMap(({ rss_bytes }) => rss_bytes ?? []);
  return known.length > 0 ? Math.max(...known) : row.broker_rss_bytes;
}

// The values of a second by line name.
export function valuesOf(row: SecondNews): [string, number | null][] {
  // The rates of the short remainder of a phase are not representative.
  const rate = (value: number | null) => (row.length_s < 0.5 ? null : value);
  return [
    ["due", hasLoad(row) ? rate(row.offered_in_per_s) : null],
    ["in, sent", rate(row.sent_per_s)],
    // QoS 0 has no acknowledgements.
    ["in, acknowledged", row.acked_per_s > 0 ? rate(row.acked_per_s) : null],
    ["out, delivered", rate(row.received_per_s)],
    ["e2e median", row.e2e_p50_us],
    ["e2e p95", row.e2e_p95_us],
    ["e2e p99", row.e2e_p99_us],
    ["e2e max", row.e2e_max_us],
    ["connect", row.connect_mean_us],
    ["subscribe", row.subscribe_mean_us],
    ["publish acknowledged", row.ack_mean_us],
    ["end to end", row.e2e_mean_us],
    ["connect p99", row.connect_p99_us],
    ["subscribe p99", row.subscribe_p99_us],
    ["publish acknowledged p99", row.ack_p99_us],
    ["end to end p99", row.e2e_p99_us],
    ["failed connects", row.connect_failed_per_s],
    ["failed subscribes", row.subscribe_failed_per_s],
    ["failed publishes", row.publish_failed_per_s],
    ["lost connections", row.length_s > 0 ? row.disconnects / row.length_s : null],
    ["clients of the scenario", row.clients],
    ["connected", row.connected],
    ["read", rate(row.bytes_in_per_s)],
    ["written", rate(row.bytes_out_per_s)],
    ["broker", rate(busiest(row))],
    ["generator", rate(row.generator_cpu_percent)],
    ["round trip median", row.rtt_p50_us],
    ["round trip max", row.rtt_max_us],
    ...(hasLogins(row) ? valuesOfLogins(row) : []),
  ];
}

// True when clients log in by a schedule.
export function hasLogins(row: SecondNews): boolean {
  return typeof row.login_accepted_per_s === "number";
}

function valuesOfLogins(row: SecondNews): [string, number | null][] {
  const rate = (value: number | null) => (row.length_s < 0.5 ? null : value);
  return [
    ["logins accepted", rate(row.login_accepted_per_s)],
    ["logins refused", rate(row.login_refused_per_s)],
    ["logins undecided", rate(row.login_undecided_per_s)],
    ["login median", row.login_p50_us],
    ["login p99", row.login_p99_us],
    ["login max", row.login_max_us],
  ];
}

const CPU: [CpuState, string, string][] = [
  ["user", "user", "c1"], ["nice", "nice", "c7"], ["system", "system", "c2"],
  ["irq", "interrupts", "c5"], ["softirq", "soft interrupts", "c3"], ["iowait", "waiting for I/O", "c6"],
  ["steal", "stolen", "c4"],
];
const MEMORY: [string, string][] = [
  ["used", "c1"], ["slab", "c5"], ["buffers", "c6"], ["cache", "c3"], ["free", "c8"],
];
const LOAD: [string, string][] = [["1 min", "c1"], ["5 min", "c3"], ["15 min", "c2"]];
const NET = "net ";
const DISK = "disk traffic ";
const OPERATIONS = "disk operations ";
const BUSY = "disk busy ";
const WAIT = "disk wait ";
const SPACE = "disk space ";
const PROCESS = "process ";
const RESIDENT = "memory of ";
const COLOURS = ["c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"];

// The values of a host's row by line name.
export function valuesOfHost(row: HostNews): [string, number | null][] {
  const { cpu, load, memory, interfaces, disks, file_systems, processes } = row.host;
  const values: [string, number | null][] = [];
  if (cpu !== null) for (const [state, name] of CPU) values.push([name, cpu[state]]);
  if (memory !== null) {
    const slab = (memory.slab_reclaimable ?? 0) + (memory.slab_unreclaimable ?? 0);
    values.push(
      ["used", memory.used], ["slab", slab], ["buffers", memory.buffered],
      ["cache", memory.cached], ["free", memory.free],
    );
  }
  if (load !== null) LOAD.forEach(([name], index) => values.push([name, load[index] ?? null]));
  for (const { name, rx_bytes_per_s, tx_bytes_per_s } of interfaces) {
    values.push([`${NET}${name} in`, rx_bytes_per_s], [`${NET}${name} out`, tx_bytes_per_s]);
  }
  for (const disk of disks) {
    values.push(
      [`${DISK}${disk.name} read`, disk.read_bytes_per_s],
      [`${DISK}${disk.name} written`, disk.written_bytes_per_s],
      [`${OPERATIONS}${disk.name} reads`, disk.reads_per_s],
      [`${OPERATIONS}${disk.name} writes`, disk.writes_per_s],
      [`${BUSY}${disk.name}`, disk.busy_percent],
      [`${WAIT}${disk.name} read`, disk.read_wait_us],
      [`${WAIT}${disk.name} write`, disk.write_wait_us],
    );
  }
  for (const { mount_point, used, available } of file_systems) {
    const most = used + available;
    values.push([`${SPACE}${mount_point}`, most > 0 ? (used * 100) / most : null]);
  }
  for (const { name, pid, cpu_percent, rss_bytes } of processes) {
    const shown = `${name}${pid === null ? "" : ` (${pid})`}`;
    values.push([`${PROCESS}${shown}`, cpu_percent], [`${RESIDENT}${shown}`, rss_bytes]);
  }
  return values;
}

// Lines of the columns whose names start with `prefix`, one colour each.
function prefixed(rows: Rows, prefix: string, wanted = (_name: string) => true): PanelLine[] {
  return rows.names().filter((name) => name.startsWith(prefix) && wanted(name))
    .slice(0, COLOURS.length)
    .map((name, index) => ({ name, class: COLOURS[index]! }));
}

// The same for columns that had traffic: interfaces and groups without any get no line.
function active(rows: Rows, prefix: string): PanelLine[] {
  return prefixed(rows, prefix, (name) => rows.hasNonZero(name));
}

// The panels with at least one line for which `isKnown` holds.
function withLines(panels: Panel[], isKnown: (name: string) => boolean = () => true): Panel[] {
  return panels.filter((panel) => panel.lines.some(({ name }) => isKnown(name)));
}

// The charts of a host: those with values from its source.
export function hostPanels(rows: Rows): Panel[] {
  const known = new Set(rows.names());
  const panels: Panel[] = [
    {
      title: "CPU",
      axis: "of all cores",
      unit: "percent",
      stacked: true,
      to: 100,
      lines: CPU.map(([, name, cls]) => ({ name, class: cls })),
    },
    {
      title: "Memory",
      axis: "bytes",
      unit: "bytes",
      stacked: true,
      lines: MEMORY.map(([name, cls]) => ({ name, class: cls })),
    },
    { title: "Network", axis: "bytes per second", unit: "bytes_per_s", lines: active(rows, NET) },
    { title: "Load", axis: "tasks", unit: "number", lines: LOAD.map(([name, cls]) => ({ name, class: cls })) },
    { title: "Disk traffic", axis: "bytes per second", unit: "bytes_per_s", lines: active(rows, DISK) },
    {
      title: "Disk operations",
      axis: "operations per second",
      unit: "rate",
      lines: active(rows, OPERATIONS),
    },
    { title: "Disks busy", axis: "of the time", unit: "percent", lines: active(rows, BUSY) },
    { title: "Time of a disk operation", axis: "mean", unit: "latency", lines: active(rows, WAIT) },
    { title: "Disk space", axis: "used", unit: "percent", lines: prefixed(rows, SPACE) },
    { title: "CPU of processes", axis: "one core = 100 %", unit: "percent", lines: prefixed(rows, PROCESS) },
    { title: "Memory of processes", axis: "resident bytes", unit: "bytes", lines: prefixed(rows, RESIDENT) },
  ];
  return withLines(panels, (name) => known.has(name));
}

const SENT = "in ";
const RECEIVED = "out ";
const CONNECTED = "connected ";

// The values of groups by line name.
export function valuesOfGroups(row: SecondNews): [string, number | null][] {
  const groups = (row.parts ?? []).filter(({ by }) => by === "group");
  return groups.flatMap(({ name, sent_per_s, received_per_s, connected }): [string, number | null][] => [
    [`${SENT}${name}`, row.length_s < 0.5 ? null : sent_per_s],
    [`${RECEIVED}${name}`, row.length_s < 0.5 ? null : received_per_s],
    [`${CONNECTED}${name}`, connected],
  ]);
}

// The charts of groups: those with activity.
export function groupPanels(rows: Rows): Panel[] {
  return withLines([
    {
      title: "Messages that groups publish",
      axis: "messages per second",
      unit: "rate",
      lines: active(rows, SENT),
    },
    {
      title: "Messages that groups receive",
      axis: "messages per second",
      unit: "rate",
      lines: active(rows, RECEIVED),
    },
    { title: "Clients connected", axis: "clients", unit: "number", lines: active(rows, CONNECTED) },
  ]);
}

// The values of one of several brokers by line name.
export function valuesOfBroker(row: SecondNews, part: PartNews): [string, number | null][] {
  const rate = (value?: number) => (row.length_s < 0.5 ? null : value ?? null);
  return [
    ["from clients", rate(part.sent_per_s)],
    ["to clients", rate(part.received_per_s)],
    ["from bridges of others", rate(part.bridged_in_per_s)],
    ["by its bridges to others", rate(part.bridged_out_per_s)],
    ["process", rate(part.cpu_percent)],
    ["its cores, busy", rate(part.cores_busy_percent)],
    ["resident", part.rss_bytes ?? null],
    ["median", part.rtt_p50_us],
    ["clients", part.connected],
    ["connections of its bridges", part.bridge_connections_up ?? null],
    ["waiting, or not acknowledged", part.bridge_waiting ?? null],
  ];
}

const BROKER_PANELS: Panel[] = [
  {
    title: "Messages in and out",
    axis: "messages per second",
    unit: "rate",
    lines: lines(
      ["from clients", "c1"], ["to clients", "c3"], ["from bridges of others", "c5"],
      ["by its bridges to others", "c2"],
    ),
  },
  {
    title: "CPU of the broker",
    axis: "one core = 100 %",
    unit: "percent",
    lines: lines(["process", "c1"], ["its cores, busy", "c2"]),
  },
  { title: "Memory of the broker", axis: "bytes", unit: "bytes", lines: lines(["resident", "c1"]) },
  { title: "Round trip to the broker", axis: "time", unit: "latency", lines: lines(["median", "c3"]) },
  {
    title: "Connections",
    axis: "connections",
    unit: "number",
    lines: lines(["clients", "c1"], ["connections of its bridges", "c2"]),
  },
  {
    title: "Messages that wait in its bridges",
    axis: "messages",
    unit: "number",
    lines: lines(["waiting, or not acknowledged", "c2"]),
  },
];

// The charts of one of several brokers, with the lines that have values.
export function brokerPanels(rows: Rows): Panel[] {
  const hasValues = (name: string) => rows.column(name).some((value) => value !== null);
  const panels = BROKER_PANELS
    .map((panel) => ({ ...panel, lines: panel.lines.filter(({ name }) => hasValues(name)) }));
  return withLines(panels);
}

// A line's name in the legend: without the prefix or suffix that makes it unique among all charts.
export function shownName(name: string): string {
  const prefixes = [
    NET, DISK, OPERATIONS, BUSY, WAIT, SPACE, PROCESS, RESIDENT, SENT, RECEIVED, CONNECTED, "e2e ",
    "round trip ", "logins ", "login ",
  ];
  for (const start of prefixes) {
    if (name.startsWith(start)) return name.slice(start.length);
  }
  return name.replace(/ p99$/, "");
}

// A panel with its values, in the form that the chart takes; `text` translates its words.
export function chartData(
  panel: Panel,
  rows: Rows,
  [from, to]: [number, number],
  bands: [number, number, string][],
  thresholds: ThresholdNews[] = [],
  text: (words: string) => string = (words) => words,
): ChartData {
  const drawn = panel.lines.map(({ name, class: cls }): LineData => ({
    name: text(shownName(name)),
    class: panel.stacked ? `${cls} area` : cls,
    // Connects come in bursts: a line between them would show values that were not measured.
    marker: cls.includes("points") ? "dot" : "",
    published: false,
    places: 0,
    values: rows.column(name),
  }));
  return {
    title: text(panel.title),
    wide: panel.wide ?? false,
    stacked: panel.stacked ?? false,
    x: { title: text("seconds since the start"), unit: "seconds", log: false, from, to },
    y: {
      title: text(panel.axis), unit: panel.unit, log: panel.log ?? false,
      from: 0, to: panel.to ?? 0,
    },
    lines: drawn,
    bands: bands.map(([start, end, name]) => [start, end, text(name)]),
    marks: thresholds
      .filter(({ figure }) => panel.figures?.includes(figure) ?? false)
      .map(({ condition, limit }) => ({ x: null, y: limit, name: condition, colour: 0 })),
  };
}
