// A broker as the console passes on what its management API answers.

import type { ServerResponse } from "node:http";

import type {
  Alarms,
  Backup,
  BanRow,
  Bridge,
  Client,
  ClientRow,
  ConfigValue,
  Drain,
  GroupRow,
  History,
  RetainedRow,
  Status,
  Subscriber,
  TraceEntry,
} from "../../src/console/broker/types";
import { random } from "./data";

export interface BrokerOptions {
  role: "viewer" | "administrator";
  // It does not answer.
  isGone: boolean;
  // Nothing is connected, retained or bridged.
  isEmpty: boolean;
}

type Answer = [status: number, body: unknown];

const CLIENTS = 12_000;
const PAGE = 100;

function clientRow(index: number): ClientRow {
  const draw = random(index + 1);
  const connected = index % 9 !== 4;
  const isFull = index === 6;
  return {
    client_id: index === 2 ? "gateway/eu-central/rack-7" : `meter-${String(index).padStart(5, "0")}`,
    connected,
    address: connected
      ? `10.20.${Math.floor(index / 250) % 250}.${(index % 250) + 1}:${40_000 + (index % 20_000)}`
      : null,
    user: index % 5 === 0 ? null : ["meter", "gateway", "dashboard"][index % 3]!,
    version: index % 4 === 1 ? "3.1.1" : "5.0",
    for_s: Math.floor(draw() * 400_000),
    subscriptions: index % 7,
    queue_len: isFull ? 10_000 : connected ? 0 : Math.floor(draw() * 400),
    queue_bytes: isFull ? 4_200_000 : connected ? 0 : Math.floor(draw() * 90_000),
    queue_full: isFull,
    inflight: connected ? Math.floor(draw() * 12) : 0,
    output_bytes: connected ? Math.floor(draw() * 4_000) : 0,
    dropped: isFull ? 1_204 : 0,
    blocked_ms: isFull ? 8_100 : 0,
  };
}

function client(row: ClientRow): Client {
  return {
    ...row,
    shard: 1,
    listener: row.connected ? "tcp 0.0.0.0:1883" : null,
    durable: true,
    bridge: false,
    session_expiry_s: 86_400,
    session_ends_in_s: row.connected ? null : 51_200,
    inflight_max: 1_024,
    inbound_unacked: 0,
    packet_size_max: null,
    will: {
      topic: `status/${row.client_id}`,
      qos: 1,
      retain: true,
      payload_bytes: 7,
      delay_s: 30,
    },
    dropped_by_reason: row.dropped > 0 ? { queue_full: row.dropped } : {},
    last_connection: {
      reason: "another connection took its client identifier",
      ended_s_ago: 3_700,
      duration_s: 62_000,
    },
  };
}

function history(span: "hour" | "day"): History {
  const every = span === "hour" ? 10 : 60;
  const points = span === "hour" ? 360 : 1_440;
  const draw = random(11);
  const now = Date.now();
  const places = Array.from({ length: points }, (_, index) => index);
  const wave = (index: number, length: number) => 1 + Math.sin((index / points) * length) * 0.3;
  let [incoming, outgoing, dropped] = [1_000_000, 2_400_000, 40];
  return {
    span,
    every_s: every,
    time_ms: places.map((index) => now - (points - 1 - index) * every * 1000),
    clients_connected: places.map((index) => Math.round(10_400 * wave(index, 4))),
    sessions: places.map((index) => Math.round(12_000 * wave(index, 4)) + 900),
    messages_in: places.map((index) => {
      incoming += Math.round(every * 5_200 * wave(index, 7) * (0.95 + draw() / 10));
      return incoming;
    }),
    messages_out: places.map((index) => {
      outgoing += Math.round(every * 14_800 * wave(index, 7) * (0.95 + draw() / 10));
      return outgoing;
    }),
    dropped: places.map((index) => (dropped += index % 90 === 60 ? 25 : 0)),
    waiting: places.map((index) => Math.round(4_000 * wave(index, 9))),
    memory_bytes: places.map((index) => Math.round(210e6 * wave(index, 3))),
    journal_bytes: places.map((index) => Math.round(640e6 * wave(index, 2))),
    loop_lag_us: places.map((index) =>
      Math.round(120 + draw() * 90 + (index % 120 === 30 ? 2_100 : 0)),
    ),
    overload_level: places.map(() => 0),
  };
}

const GROUPS: GroupRow[] = [
  { filter: "$share/workers/jobs/#", members: 12, connected: 11, free_credit: 180, inflight: 44, waiting: 0, queue_full: false },
  { filter: "$share/billing/meter/+/total", members: 3, connected: 0, free_credit: 0, inflight: 0, waiting: 8_120, queue_full: false },
];

const RETAINED: RetainedRow[] = Array.from({ length: 240 }, (_, index) => ({
  topic: `buildings/${Math.floor(index / 12) + 1}/floors/${index % 12}/temperature`,
  qos: index % 3,
  payload_bytes: 18 + (index % 40),
  user: index % 4 === 0 ? null : "gateway",
  expires_in_s: index % 6 === 0 ? 3_600 * (index % 20) : null,
}));

const figures = (sent: number) => ({
  reconnects: 2, ack_timeouts: 0, sent, received: 120, acknowledged: sent - 3,
  buffered_messages: 12,
  buffered_bytes: 4_096, inflight: 3, dropped_expired: 0, dropped_full: 4, dropped_looped: 0,
  dropped_refused: 0, dropped_too_large: 0, dropped_unmapped: 0,
});

const BRIDGES: Bridge[] = [
  {
    name: "cloud", remote: "mqtts://broker.example:8883", state: "partly", connected: 1, ...figures(90_000),
    connections: [
      { connection: 1, state: "up", for_s: 7_200, ...figures(60_000) },
      { connection: 2, state: "down", for_s: 42, problem: "the broker refused the connection: not authorized (0x87)", ...figures(30_000) },
    ],
  },
];

const ALARMS: Alarms = {
  active: [
    { alarm: "certificate", subject: "/etc/tacho/server.pem", text: "it expires in 6 days", since_ms: Date.now() - 3 * 86_400_000 },
    { alarm: "bridge", subject: "cloud", text: "1 of 2 connections is down", since_ms: Date.now() - 42_000 },
  ],
  past: [
    { alarm: "disk", text: "8 % of the file system of /var/lib/tacho are free", since_ms: Date.now() - 9 * 86_400_000, ended_ms: Date.now() - 9 * 86_400_000 + 5_400_000 },
  ],
};

// One message of a client, from its PUBLISH to a subscriber that is away.
const TRACED: Omit<TraceEntry, "time_us">[] = [
  { kind: "in", text: "PUBLISH buildings/1/floors/2/temperature, QoS 1, packet 7, 17 bytes", payload: '{"celsius": 21.5}' },
  { kind: "route", text: "buildings/1/floors/2/temperature: to 3 sessions, 1 shared group, 1 bridge" },
  { kind: "out", text: "PUBACK, packet 7" },
  { kind: "queue", text: "buildings/1/floors/2/temperature: waits, the client is away" },
  { kind: "drop", text: "buildings/1/floors/2/temperature: dropped, the queue is full" },
];

const CONFIG: ConfigValue[] = [
  { key: "shards", value: "4", source: "flag" },
  { key: "data_dir", value: "/var/lib/tacho", source: "file" },
  { key: "limits.connections_max", value: "100000", source: "file" },
  { key: "limits.packet_size_max", value: "1048576", source: "default" },
  { key: "limits.session_expiry_s_max", value: "4294967295", source: "default" },
  { key: "access.rules_file", value: "/etc/tacho/rules.toml", source: "environment" },
  { key: "journal.segment_bytes", value: "67108864", source: "default" },
];

export class MockBroker {
  private bans: BanRow[] = [
    { source: "operator", client_id: "meter-00911", reason: "sends garbage", until: "2026-12-31T18:00:00Z" },
    { source: "file", address: "192.0.2.0/24" },
    { source: "failed_logins", address: "198.51.100.7", reason: "too many failed logins", until: "2026-11-26T13:00:00Z" },
  ];
  private gone = new Set<string>();
  private paused = new Set<string>();
  private deleted = new Set<string>();
  private made: Bridge[] = [];
  private drain: Drain = { phase: "off", clients_left: 10_400, disconnected: 0, ends: false };
  private backup: Backup = { phase: "none" };
  private streams = new Set<ServerResponse>();

  constructor(private readonly options: BrokerOptions) {}

  // The answer to a request; null: it has been given.
  answer(
    method: string,
    pieces: string[],
    query: URLSearchParams,
    body: Record<string, unknown>,
    response: ServerResponse,
  ): Answer | null {
    if (this.options.isGone)
      return refused(502, "the broker does not answer at /run/tacho/1883.sock: Connection refused (os error 111)", "Broker 在 /run/tacho/1883.sock 没有响应：连接被拒绝（系统错误 111）");
    const [first, second, third] = pieces;
    if (method === "POST" && first === "bans") return this.ban(body);
    if (method === "DELETE" && first === "bans") {
      this.bans = this.bans.filter((ban) => ban.client_id !== query.get("client_id") || ban.client_id === undefined);
      return [204, null];
    }
    if (method === "DELETE" && first === "clients") {
      const isEnd = query.get("session") === "end";
      if (isEnd) this.gone.add(second ?? "");
      this.tell({ event: "disconnected", client_id: second, reason: "disconnected by an operator" });
      return [200, { client_id: second, was_connected: true, session_ended: isEnd }];
    }
    if (method === "DELETE" && first === "retained") return this.deleteRetained(query);
    if (method === "POST" && first === "reload")
      return [200, { certificates: "no certificates", access: "users and rules are unchanged", others: "other settings change at the next start" }];
    if (method === "POST" && (first === "bridge-test" || third === "test")) return trial(second ?? String(body["name"]), String(body["address"] ?? "mqtts://broker.example:8883"));
    if (method === "POST" && first === "bridges" && second === undefined) return this.make(body);
    if (method === "DELETE" && first === "bridges") {
      this.made = this.made.filter(({ name }) => name !== second);
      return [204, null];
    }
    if (first === "drain" && method !== "GET") return this.drained(method, body);
    if (method === "POST" && first === "backup") return this.back(String(body["directory"]));
    if (method === "POST" && first === "bridges") {
      const { mode } = body as { mode: string };
      if (mode === "paused") this.paused.add(second ?? "");
      else this.paused.delete(second ?? "");
      return [200, { name: second, mode, before: "running" }];
    }
    switch (first) {
      case "status": return [200, this.status()];
      case "session": return [200, { name: "console", role: this.options.role }];
      case "history": return [200, history(query.get("span") === "day" ? "day" : "hour")];
      case "limits": return [200, { limits: [
        { limit: "connections_max", used: 10_400, max: 100_000 },
        { limit: "sessions_max", used: 95_400, max: 100_000 },
        { limit: "subscriptions_bytes_max", used: 41e6, max: 536_870_912 },
        { limit: "retained_count_max", used: 240, max: 100_000 },
      ] }];
      case "journal": return this.options.isEmpty
        ? refused(404, "this broker has no journal: it has no `data_dir`", "此 Broker 没有日志：未设置 `data_dir`")
        : [200, { directory: "/var/lib/tacho/journal", condition: "fine", segments: 11, log_bytes: 640e6, live_bytes: 410e6, garbage_bytes: 230e6, live_messages: 48_200, live_entries: 51_000, live_keys: 12_000, commits: 912_000, freed_segments: 40, quarantined: 0 }];
      case "clients": return this.clients(second, third, query);
      case "receivers": return [200, { topic: query.get("topic"), subscribers: this.subscribers(), groups: GROUPS.slice(0, 1), bridges: ["cloud"] }];
      case "subscribers": return [200, { subscribers: this.subscribers().slice(0, 2) }];
      case "groups": return [200, { groups: this.options.isEmpty ? [] : GROUPS }];
      case "group": return [200, { ...GROUPS[0], filter: query.get("filter"), member_list: this.subscribers().map((row) => ({ ...row, inflight: 4, queue_len: 0 })), cut: false }];
      case "retained": return this.retained(second, query);
      case "bridges": return [200, { bridges: this.options.isEmpty ? [] : [...this.made, ...BRIDGES].map((row) => ({ ...row, mode: this.paused.has(row.name) ? "paused" : "running" })) }];
      case "explain": {
        const allowed = query.get("topic")?.startsWith("in/") ?? false;
        return [200, {
          client_id: query.get("client_id") ?? "client", user: query.get("user") ?? "meter", roles: ["device"],
          allowed, why: allowed ? "/etc/tacho/rules.toml:12" : "no rule of /etc/tacho/rules.toml allows it",
          of_session: !query.has("user"),
        }];
      }
      case "drain": return [200, this.drain];
      case "backup": {
        const { backup } = this;
        // It is done once it was asked for.
        if (backup.phase === "running") this.backup = { ...backup, phase: "done", commit: 912_004, segments: 11, linked_bytes: 620e6, copied_bytes: 20e6, took_ms: 84 };
        return [200, backup];
      }
      case "alarms": return [200, this.options.isEmpty ? { active: [], past: [] } : ALARMS];
      case "trace": return this.trace(query, response);
      case "bans": return [200, { bans: this.bans, flapping_client_ids: 2, lasting: false, cut: false }];
      case "users": return [200, { users: ["dashboard", "gateway", "meter"].map((user) => ({ user, listeners: ["tcp 0.0.0.0:1883"], roles: user === "meter" ? ["device"] : ["device", "reader"] })), read_only: true }];
      case "roles": return [200, { roles: [{ role: "device" }, { role: "reader" }], read_only: true }];
      case "listeners": return [200, { listeners: [
        { address: "0.0.0.0:1883", transport: "tcp", connections_max: null, password_file: "/etc/tacho/users", allow_anonymous: false },
        { address: "0.0.0.0:8083", transport: "ws", connections_max: null, password_file: "/etc/tacho/users", allow_anonymous: false, path: "/mqtt" },
        { address: "0.0.0.0:8884", transport: "wss", connections_max: 2_000, password_file: null, allow_anonymous: true, path: "/mqtt", origins: ["https://app.example"] },
      ] }];
      case "config": return [200, { values: CONFIG }];
      case "events": this.follow(response); return null;
      default: return refused(404, "there is no such operation", "没有此操作");
    }
  }

  private status(): Status {
    const counted = Math.floor(Date.now() / 10);
    return {
      version: "0.2.0", uptime_s: 273_000, shards: 4, healthy: true, problem: null, clients_connected: 10_400,
      sessions: 12_900, subscriptions: 41_200, retained: 240,
      messages_in: counted * 52, messages_out: counted * 148,
      waiting: 4_120, memory_bytes: 214e6, overload_level: this.options.isEmpty ? 0 : 1,
      bridges_up: 0, bridges: this.options.isEmpty ? 0 : 1,
    };
  }

  private clients(id: string | undefined, part: string | undefined, query: URLSearchParams): Answer {
    const all = Array.from({ length: this.options.isEmpty ? 0 : CLIENTS }, (_, index) => index);
    if (id !== undefined) {
      const at = all.find((index) => clientRow(index).client_id === id);
      if (at === undefined || this.gone.has(id))
        return refused(404, `there is no session of the client '${id}'`, `没有客户端“${id}”的会话`);
      if (part === "subscriptions")
        return [200, { subscriptions: [
          { filter: "buildings/+/alarms/#", qos: 1, no_local: true },
          { filter: `commands/${id}`, qos: 2, subscription_id: 7 },
        ] }];
      return [200, client(clientRow(at))];
    }
    const prefix = query.get("prefix") ?? "";
    const state = query.get("state");
    const from = Number(query.get("cursor") ?? "0");
    const rows: ClientRow[] = [];
    let next: string | undefined;
    for (const index of all.slice(from)) {
      const row = clientRow(index);
      if (!row.client_id.startsWith(prefix) || this.gone.has(row.client_id)) continue;
      if (state && row.connected !== (state === "connected")) continue;
      if (rows.length === PAGE) {
        next = String(index);
        break;
      }
      rows.push(row);
    }
    return [200, { clients: rows, ...(next === undefined ? {} : { next }) }];
  }

  private subscribers(): Subscriber[] {
    return [0, 2, 4, 5].map((index) => {
      const { client_id: id, connected } = clientRow(index);
      return { client_id: id, connected, filter: index === 2 ? "#" : "buildings/+/floors/#", qos: 1 };
    });
  }

  private retained(part: string | undefined, query: URLSearchParams): Answer {
    const all = this.options.isEmpty ? [] : RETAINED;
    const rows = all.filter(({ topic }) => !this.deleted.has(topic));
    if (part === "message") {
      const row = rows.find(({ topic }) => topic === query.get("topic"));
      return row === undefined
        ? refused(404, "there is no retained message of the topic", "没有此主题的保留消息")
        : [200, { ...row, payload: '{"celsius": 21.5, "at": "2026-11-26T12:00:00Z"}', payload_base64: "eyJj", content_type: "application/json" }];
    }
    const wanted = query.get("filter") ?? "#";
    const from = Number(query.get("cursor") ?? "0");
    const found = rows.filter(({ topic }) => wanted === "#" || topic.startsWith(wanted.replace(/\/#$/, "")));
    const page = found.slice(from, from + PAGE);
    const next = from + PAGE < found.length ? { next: String(from + PAGE) } : {};
    return [200, { retained: page, ...next }];
  }

  private deleteRetained(query: URLSearchParams): Answer {
    const topic = query.get("topic");
    const prefix = query.get("filter")?.replace(/\/#$/, "");
    const doomed = RETAINED.filter((row) => (topic === null ? row.topic.startsWith(prefix ?? "") : row.topic === topic)).filter((row) => !this.deleted.has(row.topic));
    for (const row of doomed) this.deleted.add(row.topic);
    return [200, { deleted: doomed.length }];
  }

  private ban(body: Record<string, unknown>): Answer {
    const { client_id: id, user, address, reason } = body as Partial<BanRow>;
    if (address === "here") return refused(400, "'here' is neither an address nor a range: write 192.0.2.7 or 192.0.2.0/24", "“here”既不是地址也不是范围：请填写 192.0.2.7 或 192.0.2.0/24");
    this.bans = [{ source: "operator", ...(id ? { client_id: id } : {}), ...(user ? { user } : {}), ...(address ? { address } : {}), ...(reason ? { reason } : {}) }, ...this.bans];
    return [204, null];
  }

  private make(body: Record<string, unknown>): Answer {
    const { name, address } = body as { name: string; address: string };
    if (name === "cloud") return refused(409, "there is a bridge 'cloud' already", "已有桥接“cloud”");
    this.made = [{ name, remote: address, source: "api", state: "up", connected: 1, ...figures(0), connections: [{ connection: 1, state: "up", for_s: 1, ...figures(0) }] }];
    return [201, { name, lasting: true, warnings: [] }];
  }

  private drained(method: string, body: Record<string, unknown>): Answer {
    if (method === "DELETE") this.drain = { phase: "off", clients_left: 10_400, disconnected: 0, ends: false };
    else if (Number(body["wait_s"]) >= Number(body["deadline_s"]))
      return [400, { error: { field: "wait_s", message: `the wait must be shorter than \`deadline_s\`, ${body["deadline_s"]}`, message_zh: "等待必须短于 `deadline_s`" } }];
    else
      this.drain = {
        phase: "disconnecting", clients_left: 8_200, disconnected: 2_200, ends: body["keep"] !== true,
        server_reference: (body["server_reference"] as string | undefined) ?? null, left_s: 240,
      };
    return [200, this.drain];
  }

  private back(directory: string): Answer {
    if (!directory.startsWith("/"))
      return [400, { error: { field: "directory", message: "write the path of a directory on the broker's host, beginning with /", message_zh: "请填写 Broker 主机上目录的路径，以 / 开头" } }];
    this.backup = { phase: "running", directory };
    return [200, this.backup];
  }

  private follow(response: ServerResponse): void {
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    this.streams.add(response);
    response.on("close", () => this.streams.delete(response));
    this.tell({ event: "ready" });
    if (this.options.isEmpty) return;
    const draw = random(3);
    const kinds = ["connected", "disconnected", "taken_over", "login_refused", "connected", "dropped", "bridge_down"];
    kinds.forEach((event, index) => {
      const row = clientRow(Math.floor(draw() * 900));
      this.tell({
        event,
        ...(event === "bridge_down" ? { bridge: "cloud" } : { client_id: row.client_id, user: row.user ?? undefined, address: row.address ?? undefined }),
        ...(event === "disconnected" ? { reason: "it was silent for longer than its keep-alive" } : {}),
        ...(event === "dropped" ? { reason: "queue full", count: 40 + index } : {}),
      });
    });
  }

  private trace(query: URLSearchParams, response: ServerResponse): Answer | null {
    if (query.get("address") === "here")
      return refused(400, "'here' is neither an address nor a range: write 192.0.2.7 or 192.0.2.0/24", "“here”既不是地址也不是范围：请填写 192.0.2.7 或 192.0.2.0/24");
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    const tell = (entry: object) => {
      const json = JSON.stringify({ time_us: Date.now() * 1000, ...entry });
      response.write(`data: ${json}\n\n`);
    };
    tell({ kind: "ready" });
    const hasPayloads = query.get("payload") === "text";
    for (const { payload, ...entry } of TRACED)
      tell({
        client_id: query.get("client_id") ?? "meter-00042",
        ...entry,
        ...(hasPayloads && payload !== undefined ? { payload } : {}),
      });
    if (query.get("seconds") === "60") {
      tell({ kind: "ended", text: "the trace ends: its time is over" });
      response.end();
    }
    return null;
  }

  tell(event: Record<string, unknown>): void {
    const json = JSON.stringify({ time_ms: Date.now(), ...event });
    for (const stream of this.streams) stream.write(`data: ${json}\n\n`);
  }
}

function trial(name: string, address: string): Answer {
  const accepted = !address.includes("nowhere");
  const why = accepted ? null : "nowhere:1883: the name is not known";
  return [200, { name, remote: address, accepted, address: accepted ? "192.0.2.9:8883" : null, certificate_verified: address.startsWith("mqtts") ? true : null, reason_code: accepted ? 0 : null, reason: accepted ? "success" : null, problem: why, took_ms: 42 }];
}

function refused(status: number, message: string, zh: string): Answer {
  return [status, { error: { field: null, message, message_zh: zh } }];
}
