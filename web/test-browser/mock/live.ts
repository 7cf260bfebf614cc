// The events of a run under way: a history of a minute, then a row each second.

import type { ServerResponse } from "node:http";

import { random } from "./data";

const draw = random(5);

function second(at: number) {
  const phase = at < 2 ? "ramp-up" : at < 7 ? "warm-up" : "measure";
  const load = at < 2 ? 0 : 10_000;
  const wave = 1 + Math.sin(at / 6) * 0.15 + draw() * 0.2;
  return {
    clients: 2_000,
    start_s: at,
    length_s: 1,
    phase,
    connected: at < 2 ? (at + 1) * 1_000 : 2_000,
    offered_in_per_s: load,
    sent_per_s: load,
    acked_per_s: load && load - draw() * 60,
    received_per_s: load && load - draw() * 90,
    e2e_p50_us: load ? 140 * wave : null,
    e2e_p95_us: load ? 600 * wave : null,
    e2e_p99_us: load ? (at % 23 === 0 ? 14_000 : 1_800 * wave) : null,
    e2e_max_us: load ? 6_000 * wave * (at % 23 === 0 ? 6 : 1) : null,
    e2e_mean_us: load ? 180 * wave : null,
    ack_mean_us: load ? 120 * wave : null,
    ack_p99_us: load ? 900 * wave : null,
    connect_mean_us: at < 2 ? 800 : null,
    connect_p99_us: at < 2 ? 9_000 : null,
    connect_failed_per_s: 0,
    subscribe_mean_us: at < 2 ? 1_200 : null,
    subscribe_p99_us: null,
    subscribe_failed_per_s: 0,
    publish_failed_per_s: 0,
    disconnects: at === 31 ? 3 : 0,
    rtt_p50_us: 60 * wave,
    rtt_max_us: 900 * wave,
    bytes_in_per_s: load * 160,
    bytes_out_per_s: load * 168,
    broker_cpu_percent: load ? 36 * wave : 2,
    broker_rss_bytes: 25_000_000 + at * 9_000,
    generator_cpu_percent: load ? 52 * wave : 3,
    host_cpu_percent: 45 * wave,
  };
}

function host(at: number) {
  const busy = 20 + draw() * 15;
  return {
    at_s: at,
    host: {
      host: "bench-1",
      source: "local",
      target: null,
      cpu: {
        user: busy,
        nice: 0,
        system: busy / 2,
        irq: 0,
        softirq: 6,
        iowait: 1,
        steal: 0.4,
        idle: 100 - busy * 1.5 - 7.4,
      },
      load: [1.2, 1.1, 0.9],
      memory: {
        total: 8e9,
        used: 2.1e9,
        buffered: 1e8,
        cached: 2.4e9,
        free: 3.3e9,
        slab_reclaimable: 1e8,
        slab_unreclaimable: 5e7,
      },
      interfaces: [{ name: "eth0", rx_bytes_per_s: 1.6e6, tx_bytes_per_s: 1.7e6 }],
      disks: [],
      file_systems: [{ mount_point: "/", used: 4e10, available: 6e10 }],
      processes: [{ name: "tacho", pid: 4711, cpu_percent: 36, rss_bytes: 2.5e7 }],
    },
  };
}

function agents(at: number) {
  const wave = 1 + Math.sin(at / 6) * 0.1;
  return [1, 2].map((number) => ({
    name: `load-${number}`,
    clients: 1_000,
    sent_per_s: 5_000,
    received_per_s: 5_000 - draw() * 40,
    bytes_out_per_s: 800_000,
    bytes_in_per_s: 840_000,
    send_delay_us: { p99: 90 * wave * number },
    threads_cpu_percent: 24 * wave,
    thread_busy_max_percent: 24 * wave,
    cpu_percent: number === 1 ? 26 * wave : null,
    retransmits_per_s: number === 1 ? 0 : null,
    bus_up_bytes_per_s: 21_000,
    bus_down_bytes_per_s: 180,
  }));
}

const END = {
  verdict: "ok",
  reasons: ["The broker carried the whole offered load."],
  directory: "runs/x",
  files: ["report.html"],
  stays: true,
};

// Sends the history, then a row a second until the page leaves or the run ends; of one that has
// ended, which has no `onEnd`, all of it.
export function stream(
  response: ServerResponse,
  onEnd: ((end: () => void) => void) | null,
): void {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
  const send = (kind: string, data: unknown) =>
    response.write(`event: ${kind}\ndata: ${JSON.stringify(data)}\n\n`);
  const action = {
    run: 1,
    number: 0,
    kind: "disconnect",
    what: "3 clients of pub break off",
    what_zh: "pub 的 3 个客户端断开连接",
    at_s: 31,
    length_s: null,
    clients: 3,
    followed: "3 of 3 back after 120 ms",
    followed_zh: "3 个中有 3 个在 120 毫秒后恢复",
  };
  send("hello", {
    name: "20261126-040010-symmetric",
    kind: "run",
    run: {
      number: 1,
      title: null,
      scenario: "symmetric",
      description: "Each publisher sends to one subscriber through a topic of their own.",
      clients: 2_000,
      version: "5.0",
      brokers: ["mqtt://127.0.0.1:40329"],
      at_s: 0,
      thresholds: [
        { condition: "e2e_p99<10ms", figure: "e2e_p99", symbol: "<", limit: 10_000 },
        { condition: "broker_cpu<=75%", figure: "broker_cpu", symbol: "<=", limit: 75 },
        { condition: "loss==0", figure: "loss", symbol: "==", limit: 0 },
      ],
    },
    phase: { name: "measure", planned_s: 90, number: 5, of: 7, at_s: 7 },
    failures: ["pub_m1_17: the broker closed the connection"],
    failures_count: 3,
    actions: [action],
    steps: [],
    end: onEnd === null ? END : null,
    forgotten: 0,
    overflow: 0,
  });
  let at = 0;
  const next = () => {
    send("second", second(at));
    send("agents", agents(at));
    send("host", host(at + 0.5));
    at += 1;
  };
  while (at < 50) next();
  send("ready", null);
  if (onEnd === null) {
    send("end", END);
    response.end();
    return;
  }
  const timer = setInterval(next, 1000);
  response.on("close", () => clearInterval(timer));
  onEnd(() => {
    clearInterval(timer);
    send("end", END);
  });
}
