// Realistic data for the mock of the console's server: the same each time.

import type { Agent, Row, Scenario, State, Step, Summary, Variable } from "../../src/console/types";

// Load machines: at work, free with a clock that is off, and one that does not answer.
export const AGENTS: Agent[] = ["load-1", "load-2", "load-machine-in-frankfurt-3"].map(
  (name, index) => ({
    name,
    run: index === 0 ? "20261126-101502-symmetric" : null,
    version: "0.2.0",
    labels: index === 2 ? { region: "eu", rack: "b7" } : { region: "us" },
    threads: 15,
    cores: 16,
    memory_bytes: 64 * 2 ** 30,
    descriptors: 1_048_576,
    addresses: [`10.0.0.${index + 11}`],
    calibrated_messages_per_s: index === 1 ? null : 1_042_337.4,
    clock_shift_ns: [0, -10_000_123_456, null][index] ?? null,
    clock_error_ns: [0, 250_000, null][index] ?? null,
  }),
);

// Numbers that look random and never change.
export function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296;
    return state / 4_294_967_296;
  };
}

const NOW = Date.parse("2026-11-26T04:00:00Z");
const NAMES: [scenario: string, name: string][] = [
  ["symmetric", "symmetric"],
  ["symmetric", "nightly one to one, QoS 1"],
  ["fan-in", "fan-in"],
  ["fan-out", "fan-out"],
  ["connect", "connect"],
  ["bridge", "bridge of two nodes"],
  ["persistent", "persistent"],
  ["reconnect-storm", "reconnect-storm"],
  ["symmetric", "release candidate 0.2 with TLS and 8 KiB payloads over a slow link"],
  ["soak", "soak"],
];
const VERDICTS = [
  "ok",
  "ok",
  "ok",
  "ok",
  "ok",
  "not_sustained",
  "threshold_failed",
  "generator_bound",
  "disturbed",
  "qos_violation",
  "aborted",
];
const TARGETS = ["", "", "", "mqtt://10.0.0.7:1883", "mqtts://broker-a.test.internal:8883"];
const SENTENCES: Record<string, [en: string, zh: string]> = {
  ok: ["The broker carried the whole offered load.", "Broker 承载了全部施加的负载。"],
  not_sustained: ["The broker carried less than the offered load.", "Broker 未能承载施加的负载。"],
};

export function row(index: number): Row {
  const draw = random(index + 17);
  const age = 9_999 - index;
  for (let skip = 0; skip < 5; skip += 1) draw();
  const [scenario, name] = NAMES[Math.floor(draw() * NAMES.length)]!;
  const verdict = VERDICTS[Math.floor(draw() * VERDICTS.length)]!;
  const state: State = index % 97 === 13 ? "broken" : index % 131 === 7 ? "canceled" : "finished";
  const started = NOW - index * 47 * 60_000 - Math.floor(draw() * 600_000);
  const tps = Math.round(2_000 + draw() * 48_000);
  const duration = Math.round(30 + draw() * 300);
  const hasFigures = state === "finished";
  const sentence = SENTENCES[verdict];
  return {
    id: `${new Date(started).toISOString().replace(/[-:]/g, "").replace("T", "-").slice(0, 15)}-${scenario}`,
    name,
    kind: index % 29 === 3 ? "ladder" : index % 41 === 5 ? "capacity" : "run",
    state,
    verdict: hasFigures ? verdict : null,
    verdict_text: hasFigures && sentence ? { en: sentence[0], zh: sentence[1] } : null,
    scenario,
    target: TARGETS[Math.floor(draw() * TARGETS.length)]!,
    version: `0.${1 + Math.floor(age / 4_000)}.${Math.floor(age / 400) % 10}`,
    started: state === "canceled" ? null : new Date(started).toISOString(),
    ended: new Date(started + duration * 1000).toISOString(),
    duration_s: state === "canceled" ? null : duration,
    attempted_tps: hasFigures ? tps : null,
    achieved_tps: hasFigures ? tps * (verdict === "not_sustained" ? 0.83 : 1) : null,
    loss_percent: hasFigures ? (verdict === "qos_violation" ? draw() : 0) : null,
    e2e_latency_us_p99: hasFigures ? Math.round(400 + draw() * draw() * 40_000) : null,
    cpu_percent: hasFigures ? draw() * 95 : null,
    cpu_75_tps: hasFigures && index % 29 === 3 ? tps * 1.4 : null,
    tags: index % 5 === 0 ? ["nightly"] : index % 11 === 0 ? ["release", "0.2"] : [],
    starred: index % 17 === 4,
    note:
      index % 23 === 1 ? "After the kernel update; compare with the run of the week before." : "",
    has_report: hasFigures,
    position: null,
    baseline: index === 40,
  };
}

export const RUNNING: Row = {
  ...row(1),
  id: "20261126-040010-symmetric",
  name: "nightly one to one, QoS 1",
  kind: "run",
  state: "running",
  verdict: null,
  verdict_text: null,
  scenario: "symmetric",
  target: "",
  started: "",
  ended: null,
  duration_s: 120,
  attempted_tps: null,
  achieved_tps: null,
  loss_percent: null,
  e2e_latency_us_p99: null,
  cpu_percent: null,
  cpu_75_tps: null,
  tags: ["nightly"],
  note: "",
  has_report: false,
  starred: false,
  progress: {
    phase: "measure",
    number: 5,
    of: 7,
    since: "",
    planned_s: 90,
    step_since: "",
    step_planned_s: 112,
    step: null,
    verdicts: {},
    failures: 3,
    missed: 0,
  },
};

// A ladder in its third step, for screens that show more than one run can.
export const LADDER: Row = {
  ...RUNNING,
  id: "20261126-031500-symmetric",
  name: "ladder of the release candidate",
  kind: "ladder",
  target: "mqtts://broker-a.test.internal:8883",
  progress: {
    ...RUNNING.progress!,
    step: { number: 3, of: 8, title: "step 3 of 8: target_throughput=15000" },
    verdicts: { ok: 1, not_steady: 1 },
    failures: 0,
    missed: 1,
  },
};

// The same run as it is now.
export function going(row: Row, now: number): Row {
  const ago = (seconds: number) => new Date(now - seconds * 1000).toISOString();
  const isLater = row.progress?.step != null;
  return {
    ...row,
    started: ago(isLater ? 272 : 50),
    progress: { ...row.progress!, since: ago(28), step_since: ago(48) },
  };
}

export const QUEUED: Row[] = ["fan-out", "persistent"].map((scenario, index) => ({
  ...RUNNING,
  id: `queued-${index + 1}`,
  name: scenario,
  scenario,
  state: "queued",
  position: index + 1,
  started: null,
  progress: null,
  tags: [],
}));

const variable = (
  name: string,
  kind: Variable["kind"],
  value: string,
  part: Partial<Variable> = {},
): Variable => ({
  name,
  kind,
  unit: null,
  default: value,
  minimum: null,
  maximum: null,
  choices: null,
  help: "",
  ...part,
});

const SYMMETRIC: Variable[] = [
  variable("publishers", "integer", "1000", {
    unit: "clients",
    minimum: 1,
    maximum: 1_000_000,
    unit_zh: "个客户端",
    help: "clients that publish",
    help_zh: "发布消息的客户端数",
  }),
  variable("subscribers", "integer", "1000", {
    unit: "clients",
    minimum: 1,
    maximum: 1_000_000,
    unit_zh: "个客户端",
    help: "clients that subscribe",
    help_zh: "订阅消息的客户端数",
  }),
  variable("qos", "choice", "1", {
    choices: ["0", "1", "2"],
    help: "of the publications: 0, 1 or 2",
    help_zh: "发布的 QoS：0、1 或 2",
  }),
  variable("payload_size", "size", "128", {
    unit: "bytes",
    minimum: 24,
    maximum: 268_435_455,
    unit_zh: "字节",
    help: "bytes, at least 24",
    help_zh: "字节数，不小于 24",
  }),
  variable("target_throughput", "rate", "10000", {
    unit: "msg/s",
    minimum: 1,
    unit_zh: "条/秒",
    help: "publishes per second, over all publishers",
    help_zh: "所有发布者每秒发布的消息数",
  }),
  variable("ramp_up", "duration", "2s", {
    help: "all clients connect within this time",
    help_zh: "所有客户端在此时间内完成连接",
  }),
  variable("warmup", "duration", "5s", {
    help: "sent and received, but not counted",
    help_zh: "收发消息，但不计入结果",
  }),
  variable("duration", "duration", "30s", { help: "counted", help_zh: "计入结果" }),
  variable("version", "choice", "5", {
    choices: ["3.1", "3.1.1", "5"],
    help: "of MQTT: 3.1, 3.1.1 or 5",
    help_zh: "MQTT 版本：3.1、3.1.1 或 5",
  }),
  variable("retain", "boolean", "false", {
    help: "whether publications are retained",
    help_zh: "发布的消息是否保留",
  }),
];
const about: [name: string, group: string, en: string, zh: string][] = [
  [
    "connect",
    "standard",
    "Many connections at a steady rate, no messages.",
    "以稳定速率建立大量连接，不发送消息。",
  ],
  [
    "symmetric",
    "standard",
    "Each publisher sends to one subscriber through a topic of their own.",
    "每个发布者通过专属主题向一个订阅者发送消息。",
  ],
  [
    "fan-in",
    "standard",
    "Many publishers send to a few subscribers that share the messages.",
    "众多发布者向少数共享订阅者发送消息。",
  ],
  [
    "fan-out",
    "standard",
    "Few publishers send to many subscribers.",
    "少数发布者向大量订阅者发送消息。",
  ],
  [
    "bridge",
    "standard",
    "Messages cross from one broker to another.",
    "消息在两个 Broker 之间桥接。",
  ],
  [
    "persistent",
    "standard",
    "Subscribers are absent while messages arrive, and return for them.",
    "消息到达时订阅者离线，随后重新上线接收。",
  ],
  [
    "login",
    "events",
    "Users log in at a steady rate, some with wrong passwords.",
    "用户以稳定速率登录，部分使用错误密码。",
  ],
  [
    "reconnect-storm",
    "events",
    "All clients lose their connections at once and come back.",
    "全部客户端同时断线并重连。",
  ],
  [
    "takeover",
    "events",
    "Clients are taken over by others with the same identifier.",
    "客户端被相同标识的客户端接管。",
  ],
  [
    "churn",
    "events",
    "A tenth of the clients leaves and returns each second.",
    "每秒有十分之一的客户端离开并返回。",
  ],
  [
    "slow-consumer",
    "events",
    "Some consumers do not read for a while.",
    "部分消费者一段时间不读取。",
  ],
  [
    "soak",
    "more",
    "A moderate load for a long time: does anything grow?",
    "长时间的中等负载：是否有资源持续增长？",
  ],
  [
    "mixed",
    "more",
    "Telemetry, state, commands, billing and firmware at once.",
    "遥测、状态、命令、计费与固件同时进行。",
  ],
];
export const SCENARIOS: Scenario[] = about.map(([name, group, summary, summaryZh]) => ({
  name,
  title: name,
  group,
  summary,
  summary_zh: summaryZh,
  variables: SYMMETRIC,
}));

const latency = (scale: number) => ({
  count: 300_000,
  mean: 148 * scale,
  p50: 120 * scale,
  p90: 260 * scale,
  p95: 420 * scale,
  p99: 1_770 * scale,
  p999: 4_100 * scale,
  max: 9_800 * scale,
});

export function step(part: Partial<Step> = {}): Step {
  return {
    verdict: "ok",
    label: "",
    series: "",
    window_s: 30,
    offered_in_per_s: 10_000,
    offered_out_per_s: 10_000,
    attempted_in_per_s: 10_000,
    achieved_in_per_s: 10_000,
    achieved_out_per_s: 10_000,
    tps: 20_000,
    latency_us: latency(1),
    service_us: latency(0.8),
    send_delay_us: latency(0.1),
    ack_us: latency(0.7),
    rtt_us: latency(0.4),
    connect_us: latency(2),
    sent: 300_000,
    expected: 300_000,
    received: 300_000,
    lost: 0,
    duplicates: 0,
    out_of_order: 0,
    refused: 0,
    cpu_percent: 37.5,
    whose_cpu: "broker process",
    broker_cpu_percent: 37.5,
    broker_rss_bytes: 26_400_000,
    host_cpu_percent: 48.1,
    generator_cpu_percent: 55.2,
    ...part,
  };
}

export function summary(of: Row): Summary {
  const ladder = [2_000, 5_000, 10_000, 20_000, 40_000].map((rate, index) =>
    step({
      directory: `steps/0${index + 1}-target_throughput=${rate}`,
      label: `${rate.toLocaleString("en")} msg/s`,
      offered_in_per_s: rate,
      offered_out_per_s: rate,
      tps: rate * 2,
      verdict: rate > 30_000 ? "not_sustained" : "ok",
      cpu_percent: rate / 450,
    }),
  );
  return {
    kind: of.kind,
    scenario: of.scenario,
    name: of.id,
    description: "Each publisher sends to one subscriber through a topic of their own.",
    description_zh: "每个发布者通过专属主题向一个订阅者发送消息。",
    started_at: of.started ?? "",
    elapsed_s: of.duration_s ?? 0,
    tool_version: of.version,
    verdict: of.verdict ?? "ok",
    reasons:
      of.verdict === "ok"
        ? []
        : [
            "the generator may be the bottleneck: the time stolen by the hypervisor is 1.4 %, it must stay below 1.0 %",
          ],
    notes: [
      "One-machine run: generator and broker share this machine, and on loopback the sender's core runs the receiver's TCP. Do not compare with runs over a network.",
    ],
    clients: 2_000,
    clients_connected: 2_000,
    client_failures: 0,
    first_failures: [],
    connect_per_s: 1_000,
    target: { broker: "mqtt://127.0.0.1:40329", version: "5.0" },
    thresholds: [
      { condition: "e2e_p99<10ms", value: 1_770, passed: true },
      { condition: "loss==0", value: 0, passed: true },
      { condition: "cpu<=75%", value: 37.5, passed: true },
    ],
    steps: of.kind === "ladder" ? ladder : [step({ verdict: of.verdict ?? "ok" })],
    findings: [
      {
        code: "steal",
        severity: "warning",
        sentence:
          "The hypervisor took 1.4 % of the time away: the machine was noisy; repeat the run, several times (--repeat), or on a machine of its own.",
      },
      {
        code: "delayed_ack",
        severity: "info",
        sentence:
          "Some acknowledgements came 40 ms later than their neighbours, as delayed TCP acknowledgements cause.",
      },
    ],
  };
}

export function words(of: Summary) {
  const en = {
    reasons: of.reasons,
    findings: of.findings.map(({ severity, sentence }) => ({ severity, text: sentence })),
    notes: of.notes,
  };
  const zh = {
    reasons: of.reasons.map(
      () => "瓶颈可能是负载生成器：虚拟化层占用了 1.4 % 的时间，须低于 1.0 %。",
    ),
    findings: of.findings.map(({ severity }) => ({
      severity,
      text:
        severity === "warning"
          ? "虚拟化层占用了 1.4 % 的时间：机器不够空闲，请重复测试。"
          : "部分确认比相邻的晚 40 毫秒。",
    })),
    notes: ["单机测试：负载生成器与 Broker 共用本机，请勿与跨网络的测试比较。"],
  };
  return { en, zh };
}
