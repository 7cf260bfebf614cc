// What the management API of a broker answers, as its description has it.

export interface Status {
  version: string;
  uptime_s: number;
  shards: number;
  healthy: boolean;
  problem: string | null;
  clients_connected: number;
  sessions: number;
  subscriptions: number;
  retained: number;
  messages_in: number;
  messages_out: number;
  waiting: number;
  memory_bytes: number;
  overload_level: number;
  bridges_up: number;
  bridges: number;
}

export type HistorySpan = "hour" | "day";

// A value per point in each list; messages and drops are counted since the start of the broker.
export interface History {
  span: HistorySpan;
  every_s: number;
  time_ms: number[];
  clients_connected: number[];
  sessions: number[];
  messages_in: number[];
  messages_out: number[];
  dropped: number[];
  waiting: number[];
  memory_bytes: number[];
  journal_bytes: number[];
  loop_lag_us: number[];
  overload_level: number[];
}

export interface Limit {
  limit: string;
  used: number;
  max: number;
}

export interface Journal {
  directory: string | null;
  condition: "fine" | "limited" | "full" | "failing" | "displaced";
  segments: number;
  log_bytes: number;
  live_bytes: number;
  garbage_bytes: number;
  live_messages: number;
  commits: number;
  quarantined: number;
}

export interface ClientRow {
  client_id: string;
  connected: boolean;
  address: string | null;
  user: string | null;
  version: string;
  for_s: number | null;
  subscriptions: number;
  queue_len: number;
  queue_bytes: number;
  queue_full: boolean;
  inflight: number;
  output_bytes: number;
  dropped: number;
  blocked_ms: number;
}

export interface Client extends ClientRow {
  shard: number;
  listener: string | null;
  durable: boolean;
  bridge: boolean;
  session_expiry_s: number | null;
  session_ends_in_s: number | null;
  inflight_max: number;
  inbound_unacked: number;
  packet_size_max: number | null;
  will: {
    topic: string;
    qos: number;
    retain: boolean;
    payload_bytes: number;
    delay_s: number;
  } | null;
  dropped_by_reason: Record<string, number>;
  last_connection: { reason: string; ended_s_ago: number; duration_s: number } | null;
}

export interface Subscription {
  filter: string;
  qos: number;
  no_local?: boolean;
  retain_as_published?: boolean;
  subscription_id?: number | null;
}

export interface Subscriber {
  client_id: string;
  filter: string;
  qos: number;
  connected: boolean;
}

export interface GroupRow {
  filter: string;
  members: number;
  connected: number;
  free_credit?: number;
  inflight?: number;
  waiting: number;
  queue_full?: boolean;
}

export interface Receivers {
  topic: string;
  subscribers: Subscriber[];
  groups: GroupRow[];
  bridges: string[];
  next?: string;
}

export interface Group extends GroupRow {
  member_list: {
    client_id: string;
    qos: number;
    connected: boolean;
    inflight?: number;
    queue_len?: number;
  }[];
  cut: boolean;
}

export interface RetainedRow {
  topic: string;
  qos: number;
  payload_bytes: number;
  user?: string | null;
  expires_in_s?: number | null;
}

export interface Retained extends RetainedRow {
  payload?: string | null;
  payload_base64: string;
  content_type?: string | null;
}

export type BanSource = "file" | "operator" | "failed_logins" | "flapping";

export interface BanRow {
  source: BanSource;
  address?: string;
  client_id?: string;
  user?: string;
  reason?: string;
  until?: string;
}

export interface Bans {
  bans: BanRow[];
  flapping_client_ids: number;
  lasting: boolean;
  cut: boolean;
}

export interface UserRow {
  user: string;
  listeners: string[];
  roles: string[];
}

export interface Listener {
  address: string;
  transport: "tcp" | "tls" | "ws" | "wss";
  connections_max: number | null;
  password_file: string | null;
  allow_anonymous: boolean;
  // Of its WebSockets.
  path?: string;
  // The web pages that may open them; absent: all.
  origins?: string[];
}

export type BridgeMode = "running" | "paused" | "draining" | "stopped";
export type BridgeState = "connecting" | "up" | "partly" | "down";

interface BridgeFigures {
  reconnects: number;
  sent: number;
  received: number;
  buffered_messages: number;
  buffered_bytes: number;
  inflight: number;
  [dropped: `dropped_${string}`]: number;
}

export interface Bridge extends BridgeFigures {
  name: string;
  remote: string;
  mode?: BridgeMode;
  // Of a file, which the API does not change, or made by the API.
  source?: "file" | "api";
  state: BridgeState;
  connected: number;
  connections: (BridgeFigures & {
    connection: number;
    state: BridgeState;
    for_s?: number;
    problem?: string;
  })[];
}

export interface BridgeTrial {
  name: string;
  remote: string;
  accepted: boolean;
  address: string | null;
  certificate_verified: boolean | null;
  reason_code: number | null;
  reason: string | null;
  problem: string | null;
  took_ms: number;
}

export interface BridgeMade {
  name: string;
  // It outlives the broker.
  lasting: boolean;
  warnings: string[];
}

export interface Drain {
  phase: "off" | "waiting" | "disconnecting" | "drained";
  clients_left: number;
  disconnected: number;
  // The broker ends when no client is left.
  ends: boolean;
  server_reference?: string | null;
  // Until the deadline.
  left_s?: number | null;
}

export interface Backup {
  phase: "none" | "running" | "done" | "failed";
  directory?: string | null;
  problem?: string | null;
  commit?: number | null;
  segments?: number | null;
  linked_bytes?: number | null;
  copied_bytes?: number | null;
  took_ms?: number | null;
}

export interface ConfigValue {
  key: string;
  value: string;
  source: "file" | "environment" | "flag" | "default";
}

export interface AccessAnswer {
  client_id: string;
  user: string | null;
  roles: string[];
  allowed: boolean;
  why: string;
  of_session: boolean;
}

// Times in milliseconds since 1970; `ended_ms` of those that have ended.
export interface AlarmRow {
  alarm: string;
  subject?: string;
  text: string;
  since_ms: number;
  ended_ms?: number;
}

export interface Alarms {
  active: AlarmRow[];
  past: AlarmRow[];
}

export type TraceKind = "in" | "out" | "auth" | "route" | "queue" | "drop" | "hold" | "end";

export interface TraceEntry {
  kind: TraceKind | "ready" | "missed" | "ended";
  time_us: number;
  client_id?: string;
  text: string;
  payload?: string;
  payload_cut?: boolean;
}

export interface BrokerEvent {
  event: string;
  time_ms?: number;
  client_id?: string;
  user?: string;
  address?: string;
  bridge?: string;
  alarm?: string;
  reason?: string;
  count?: number;
}
