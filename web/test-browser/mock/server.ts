// A small server that follows the contract of the console's API, for tests in a browser.

import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { readFileSync } from "node:fs";

import type {
  Agent,
  Comparison,
  Preview,
  Problem,
  Request,
  Row,
  RunFile,
  TrendPoint,
} from "../../src/console/types";
import { MockBroker } from "./broker";
import type { BrokerOptions } from "./broker";
import { RUNNING, SCENARIOS, random, summary, words } from "./data";
import { stream } from "./live";
import { Records } from "./records";
import type { Busy } from "./records";
import { Uploads } from "./uploads";

const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; frame-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
// Of the page that opens WebSockets.
const SOCKET_CSP = CSP.replace("connect-src 'self'", "connect-src 'self' ws: wss:");
const SHELL =
  '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">' +
  '<meta name="color-scheme" content="light dark"><title>Tacho</title><link rel="icon" href="data:,"><link rel="stylesheet" href="/assets/console.css"></head>' +
  '<body><div id="root"></div><noscript>This console needs JavaScript.</noscript><script src="/assets/uplot.js"></script>' +
  '<script src="/assets/console.js"></script></body></html>';
const REPORT =
  '<!doctype html><html lang="en"><title>Report</title><body><h1>Report of the run</h1><p>Everything in one file.</p></body></html>';

export interface MockOptions {
  runs: number;
  isBusy: Busy;
  // A run that was started elsewhere has the machine.
  heldBy?: string;
  isAdmitted?: boolean;
  // Runs that were deleted.
  trashed?: number;
  // Every answer of the API is this error.
  failing?: boolean;
  // The broker that the console was given; null: none.
  broker?: Partial<BrokerOptions> | null;
  role?: "viewer" | "operator";
  // Agents on the bus that the console was given.
  agents?: Agent[];
}

export interface Mock {
  address: string;
  records: Records;
  // Requests that changed something, as `METHOD path`.
  changes: string[];
  requests: Request[];
  endRun: () => void;
  close: () => Promise<void>;
}

export async function mock(options: MockOptions): Promise<Mock> {
  const state = new State(options);
  const server = createServer((request, response) => {
    state.answer(request, response).catch((error: unknown) => {
      response
        .writeHead(500)
        .end(JSON.stringify({ error: { message: String(error), field: null } }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return {
    address: `http://127.0.0.1:${port}`,
    records: state.records,
    changes: state.changes,
    requests: state.requests,
    endRun: () => state.end(),
    close: () => closed(server),
  };
}

function closed(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}

class State {
  readonly records: Records;
  readonly changes: string[] = [];
  readonly requests: Request[] = [];
  private ends: (() => void)[] = [];
  private listeners = new Set<ServerResponse>();
  private readonly uploads = new Uploads();
  private readonly broker: MockBroker | null;

  constructor(private readonly options: MockOptions) {
    this.records = new Records(options.runs, options.isBusy);
    const usual: BrokerOptions = { role: "administrator", isGone: false, isEmpty: false };
    this.broker = options.broker === null ? null : new MockBroker({ ...usual, ...options.broker });
    for (const { id } of this.records.of("finished").slice(0, options.trashed ?? 0))
      this.records.remove(id);
  }

  end(): void {
    this.records.change(RUNNING.id, {
      state: "finished",
      verdict: "ok",
      has_report: true,
      achieved_tps: 20_000,
      e2e_latency_us_p99: 1_770,
    });
    for (const end of this.ends) end();
    this.tell();
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://x");
    const asset = {
      "/assets/console.js": "text/javascript",
      "/assets/uplot.js": "text/javascript",
      "/assets/console.css": "text/css",
    }[url.pathname];
    if (asset !== undefined) {
      const name = url.pathname.split("/").pop()!;
      response
        .writeHead(200, { "content-type": `${asset}; charset=utf-8` })
        .end(readFileSync(`dist/${name}`));
      return;
    }
    if (!url.pathname.startsWith("/api/v1/")) {
      const status = this.options.isAdmitted === false ? 401 : 200;
      response
        .writeHead(status, {
          "content-type": "text/html; charset=utf-8",
          "content-security-policy": url.pathname === "/broker/websocket" ? SOCKET_CSP : CSP,
        })
        .end(SHELL);
      return;
    }
    const body = await read(request);
    const pieces = url.pathname.slice("/api/v1/".length).split("/").map(decodeURIComponent);
    if (this.options.isAdmitted === false)
      return json(response, 401, failed("open the link that the console printed"));
    if (this.options.failing)
      return json(
        response,
        503,
        failed("the folder of the runs cannot be read: permission denied", "无法读取测试目录：权限不足"),
      );
    if (request.method !== "GET") this.changes.push(`${request.method} ${pieces.join("/")}`);
    if (pieces[0] === "broker") {
      const sent = JSON.parse(body.toString("utf8") || "{}") as Record<string, unknown>;
      const method = request.method ?? "GET";
      const answer = this.broker?.answer(method, pieces.slice(1), url.searchParams, sent, response);
      if (answer === null) return;
      const [status, value] = answer ?? [404, failed("no broker is given")];
      return status === 204 ? void response.writeHead(204).end() : json(response, status, value);
    }
    return this.api(request.method ?? "GET", pieces, url.searchParams, body, response);
  }

  private api(
    method: string,
    [first, id, part]: string[],
    query: URLSearchParams,
    body: Buffer,
    response: ServerResponse,
  ): void {
    const parsed = () => JSON.parse(body.toString("utf8") || "{}") as Request;
    switch (first) {
      case "scenarios":
        return json(response, 200, {
          scenarios: SCENARIOS,
          suites: [
            { name: "guide", summary: "The tests of the EMQX guide: QoS, payloads, topologies." },
            { name: "bifromq", summary: "All 62 rows of the BifroMQ report." },
          ],
          published: [
            "1k_1k_qos0_p32_1mps",
            "100k_100k_qos1_p256_1mps",
            "share_1k_5_qos1_p256_10mps",
          ],
        });
      case "agents": {
        const { agents } = this.options;
        return json(response, 200, {
          bus: agents === undefined ? null : "control:4222",
          agents: agents ?? [],
        });
      }
      case "machine":
        return json(response, 200, {
          bus: this.options.agents === undefined ? null : "control:4222",
          doctor: [
            { level: "ok", text: "Open files: 1,048,576." },
            {
              level: "warning",
              text: "The generator is not calibrated here: 'tacho calibrate' measures what it can do in 75 seconds.",
              text_zh: "负载生成器尚未在本机校准：tacho calibrate 用 75 秒测出其能力。",
            },
            {
              level: "problem",
              text: "net.core.somaxconn: needs 2,000 connections waiting to be accepted (sysctl -w net.core.somaxconn='2000')",
              text_zh:
                "net.core.somaxconn：需要 2,000 个等待接受的连接（sysctl -w net.core.somaxconn='2000'）",
            },
          ],
          cores: 16,
          version: "0.2.0",
          role: this.options.role ?? "operator",
          broker: this.broker === null ? null : "/run/tacho/1883.sock",
        });
      case "queue":
        return json(response, 200, this.queue());
      case "events":
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.write(": hello\n\n");
        this.listeners.add(response);
        response.on("close", () => this.listeners.delete(response));
        return;
      case "uploads":
        return id === undefined
          ? json(response, 201, this.uploads.take(query.get("name") ?? "x", body))
          : json(response, 200, this.uploads.inspect(id, parsed().data ?? []));
      case "preview":
        return json(response, 200, preview(parsed()));
      case "compare":
        return json(response, 200, comparison((query.get("ids") ?? "").split(",")));
      case "trends":
        return json(response, 200, trends(this.records, query.get("scenario") ?? ""));
      case "trash": {
        if (method === "GET") return json(response, 200, this.records.trashed());
        const removed = this.records.purge(id);
        return removed === null
          ? json(response, 404, failed("no such run in the trash"))
          : json(response, 200, removed);
      }
      case "runs":
        break;
      default:
        return json(response, 404, failed("no such address"));
    }
    if (id === undefined) {
      return method === "GET"
        ? json(response, 200, this.records.page(query))
        : this.start(parsed(), response);
    }
    if (method === "DELETE") {
      return this.records.remove(id)
        ? json(response, 200, { id })
        : json(response, 404, failed("no such run"));
    }
    if (part === "restore") return json(response, this.records.restore(id) ? 200 : 404, {});
    const row = this.records.find(id);
    if (row === undefined) return json(response, 404, failed("no such run"));
    if (method === "PATCH")
      return json(response, 200, this.records.change(id, parsed() as Partial<Row>));
    switch (part) {
      case undefined: {
        const others = this.records.of("finished").filter((other) => other.id !== id);
        const baseline = others.find(({ scenario }) => scenario === row.scenario)?.id ?? null;
        return json(response, 200, { ...detail(row), baseline_run: baseline });
      }
      case "events":
        return stream(
          response,
          row.state === "finished" ? null : (end) => this.ends.push(end),
        );
      case "steps":
        return stream(response, null);
      case "report.html":
      case "report.zh.html":
        response
          .writeHead(200, {
            "content-type": "text/html",
            "content-security-policy":
              "default-src 'none'; sandbox allow-scripts; frame-ancestors 'self'",
          })
          .end(REPORT);
        return;
      case "files":
        response.writeHead(200, { "content-type": "text/plain" }).end("content");
        return;
      case "repeat":
        return this.start({ scenario: row.scenario }, response);
      case "draft":
        return json(response, 200, {
          request: {
            command: "run",
            upload: "u9",
            variables: { payload_size: "256" },
            broker: row.target || "builtin",
            thresholds: ["e2e_p99<10ms"],
          },
          uploads: [{ ...this.uploads.take("own.toml", Buffer.from("")), upload: "u9" }],
          left_out: ["--timing spin"],
        });
      case "cancel":
        return json(response, 200, this.records.change(id, { state: "canceled", position: null }));
      case "stop":
        setTimeout(() => this.end(), 50);
        return json(response, 200, row);
      default:
        return json(response, 404, failed("no such address"));
    }
  }

  private queue() {
    return {
      running: this.records.of("running")[0] ?? null,
      queued: this.records.of("queued"),
      held_by: this.options.heldBy ?? null,
      held_by_zh: this.options.heldBy?.replace("process", "进程").replace("since", "始于") ?? null,
    };
  }

  private tell(): void {
    const row = this.records.find(RUNNING.id);
    for (const listener of this.listeners) {
      listener.write(`data: ${JSON.stringify({ type: "run", row })}\n\n`);
      listener.write(`data: ${JSON.stringify({ type: "queue", ...this.queue() })}\n\n`);
    }
  }

  private start(request: Request, response: ServerResponse): void {
    const { problems } = preview(request);
    if (problems[0] !== undefined) return json(response, 400, { error: problems[0], problems });
    this.requests.push(request);
    const busy = this.records.of("running").length > 0;
    const id = `started-${this.requests.length}`;
    const position = this.records.of("queued").length + 1;
    this.records.add({
      ...RUNNING,
      id,
      name: request.name ?? request.scenario ?? "plan",
      scenario: request.scenario ?? "plan",
      started: new Date().toISOString(),
      state: busy ? "queued" : "running",
      position: busy ? position : null,
      tags: request.tags ?? [],
      note: request.note ?? "",
    });
    json(response, 201, { id, state: busy ? "queued" : "running", position: busy ? position : 0 });
  }

}

async function read(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts);
}

function failed(message: string, zh?: string) {
  return { error: { message, field: null, ...(zh === undefined ? {} : { message_zh: zh }) } };
}

function json(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}

function preview(request: Request): Preview {
  const problems: Problem[] = [];
  const size = Number(request.variables?.["payload_size"] ?? 128);
  if (!(size >= 24))
    problems.push({
      field: "variables.payload_size",
      message:
        "payload_size must be at least 24 bytes, since each message carries its time and number",
      message_zh: "payload_size 至少为 24 字节，因为每条消息都带有其时间和序号",
    });
  (request.thresholds ?? []).forEach((threshold, index) => {
    if (!/^[a-z0-9_]+(<=|>=|==|<|>).+/.test(threshold))
      problems.push({
        field: `thresholds[${index}]`,
        message: `${threshold}: a condition is a figure and a limit, such as p99<10ms`,
        message_zh: `${threshold}：条件由指标和界限组成，例如 p99<10ms`,
      });
  });
  if (
    typeof request.broker === "string" &&
    request.broker !== "builtin" &&
    !/^(mqtt|mqtts|ws|wss):\/\/./.test(request.broker)
  ) {
    problems.push({
      field: "broker",
      message: "an address begins with mqtt://, mqtts://, ws:// or wss://",
      message_zh: "地址应以 mqtt://、mqtts://、ws:// 或 wss:// 开头",
    });
  }
  const rate = Number(request.variables?.["target_throughput"] ?? 10_000);
  const variables = Object.entries(request.variables ?? {})
    .map(([name, value]) => ` --var ${name}=${value}`)
    .join("");
  return {
    command_line: `tacho run ${request.scenario ?? "plan.jmx"}${variables}${request.broker === "builtin" ? "" : ` --broker ${request.broker}`}${(request.thresholds ?? []).map((one) => ` --threshold '${one}'`).join("")}`,
    scenario_toml:
      'name = "symmetric"\ndescription = "Each publisher sends to one subscriber through a topic of their own."\n\n[groups.pub]\nclients = 1000\nclient_id = "pub_{{machine}}_{{i}}"\n\n[[groups.pub.publish]]\ntopic = "test/{{machine}}/{{i}}"\nqos = 1\nrate = { total = 10000 }\npayload = { size = 128 }\n',
    offered:
      problems.length > 0
        ? null
        : {
            clients: 2_000,
            publishers: 1_000,
            subscribers: 1_000,
            messages_in_per_s: rate,
            messages_out_per_s: rate,
            bytes_in_per_s: rate * 160,
            bytes_out_per_s: rate * 160,
            duration_s: 38,
            descriptors: 2_064,
            cores: 0.6,
          },
    variables: /^\d/.test(request.scenario ?? "") ? SCENARIOS[1]!.variables.slice(0, 4) : null,
    warnings:
      rate > 50_000
        ? ["nofile: needs 2,064 open files of one process (ulimit -n 2064)"]
        : [],
    warnings_zh:
      rate > 50_000 ? ["nofile：需要 2,064 个文件描述符（单个进程）（ulimit -n 2064）"] : [],
    problems,
  };
}

function detail(row: Row) {
  const record = row.state === "finished" ? summary(row) : null;
  return {
    ...row,
    summary: record,
    ...(record === null ? {} : { words: words(record) }),
    request:
      row.state === "broken"
        ? null
        : {
            command: "run",
            scenario: row.scenario,
            variables: { qos: "1", payload_size: "256" },
            broker: row.target || "builtin",
            thresholds: ["e2e_p99<10ms"],
            tags: row.tags,
          },
    command_line: `tacho run ${row.scenario} --var payload_size=256 --threshold 'e2e_p99<10ms'`,
    scenario_toml: 'name = "symmetric"\nseed = 1\n',
    problems:
      row.state === "broken"
        ? [
            {
              field: null,
              message: "there is no summary.json: the run was killed, or this is no run",
              message_zh: "没有 summary.json：测试被强制终止，或这不是测试目录",
            },
          ]
        : [],
    files: files(row),
    files_cut: false,
  };
}

function files(row: Row): RunFile[] {
  const own: [string, RunFile["kind"]][] = [
    ["report.html", "report"],
    ["summary.json", "record"],
    ["scenario.toml", "settings"],
    ["environment.json", "settings"],
    ["timeseries.csv", "table"],
    ["latency.hlog", "histogram"],
    ["broker.log", "log"],
  ];
  const all = [...own];
  if (row.kind !== "run")
    for (const step of ["steps/01-target_throughput=5000", "steps/02-target_throughput=10000"])
      for (const [name, kind] of own) all.push([`${step}/${name}`, kind]);
  return all.map(([name, kind], index) => ({ name, kind, bytes: 2_400 * (index + 1) ** 3 }));
}

function comparison(ids: string[]): Comparison {
  const draw = random(ids.length);
  const figure = (
    name: string,
    label: string,
    unit: string,
    better: string,
    base: number,
    spread: number,
  ) => {
    const medians = ids.map(() => base * (1 + (draw() - 0.5) * spread));
    return {
      name,
      label,
      unit,
      better,
      scale: "percent" as const,
      sides: medians.map((median) => ({
        values: [median * 0.98, median, median * 1.03],
        median,
        min: median * 0.98,
        max: median * 1.03,
      })),
      changes: medians.slice(1).map((median, index) => {
        const change = (median / medians[0]! - 1) * 100;
        const good = change > 0 === (better === "higher");
        return {
          side: ids[index + 1]!,
          change,
          low: change - 2.5,
          high: change + 2.2,
          floor: 2,
          reason: "",
          verdict:
            Math.abs(change) < 3
              ? ("no_change" as const)
              : good
                ? ("better" as const)
                : ("worse" as const),
        };
      }),
    };
  };
  return {
    name: "compare",
    scenario: "symmetric",
    interleaved: false,
    verdict: "mixed",
    sides: ids.map((id) => ({ name: id, label: id, repeats: [{ counts: true }] })),
    points: [
      {
        label: "",
        verdict: "mixed",
        figures: [
          figure("tps", "messages in + out", "messages_per_s", "higher", 20_000, 0.1),
          figure("e2e_p50", "median", "microseconds", "lower", 140, 0.3),
          figure("e2e_p99", "p99", "microseconds", "lower", 1_800, 0.5),
          figure("ack_p99", "ack", "microseconds", "lower", 900, 0.02),
          figure("broker_cpu_per_message", "CPU per message", "cpu_microseconds", "lower", 20, 0.2),
          figure("broker_rss", "memory", "bytes", "lower", 26e6, 0.1),
        ],
      },
    ],
    environment: [
      {
        name: "kernel",
        values: ids.map((_, index) => (index === 0 ? "6.1.0-28-amd64" : "6.12.9")),
      },
    ],
    scenario_differences: [
      { name: "payload_size", values: ids.map((_, index) => (index === 0 ? "128" : "256")) },
    ],
    notes: ["Each side is a single run: differences are shown, but not judged."],
  };
}

function trends(records: Records, scenario: string) {
  const rows = records
    .page(new URLSearchParams({ scenario, limit: "60", state: "finished", sort: "-started" }))
    .rows.reverse();
  const draw = random(3);
  const points: TrendPoint[] = rows.map((row, index) => ({
    id: row.id,
    name: row.name,
    started: row.started!,
    version: row.version,
    target: row.target,
    value: index === 12 ? null : (index < 34 ? 1_800 : 2_350) * (0.92 + draw() * 0.16),
  }));
  return { points, changes: points.length > 34 ? [34] : [] };
}
