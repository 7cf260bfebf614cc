// Events of a live run, as `crates/console/src/news.rs` serialises them.

export interface RunNews {
  number: number;
  title: string | null;
  scenario: string;
  description: string;
  clients: number;
  version: string;
  brokers: string[];
  at_s: number;
  // Conditions of the run; absent from programs that do not tell them.
  thresholds?: ThresholdNews[];
}

// A condition on a figure, with its limit in the figure's own unit.
export interface ThresholdNews {
  condition: string;
  figure: string;
  symbol: "<" | "<=" | ">" | ">=" | "==";
  limit: number;
}

export interface PhaseNews {
  name: string;
  planned_s: number | null;
  number: number;
  of: number;
  at_s: number;
}

export interface StepNews {
  number: number;
  label: string;
  verdict: string;
  reason: string | null;
  // The words of the console in Chinese; absent from programs that do not tell them.
  reason_zh?: string | null;
  tps: number | null;
  e2e_mean_us: number | null;
  e2e_p99_us: number | null;
  cpu_percent: number | null;
}

// A timed action that has started or progressed.
export interface ActionNews {
  run: number;
  number: number;
  kind: string;
  what: string;
  what_zh?: string;
  at_s: number;
  length_s: number | null;
  clients: number;
  followed: string;
  followed_zh?: string;
}

export interface EndNews {
  verdict: string | null;
  reasons: string[];
  directory: string;
  files: string[];
  stays: boolean;
}

export interface Hello {
  name: string;
  kind: string;
  run: RunNews | null;
  phase: PhaseNews | null;
  // Absent from programs that do not tell them.
  agents?: AgentNews[];
  failures: string[];
  failures_count: number;
  actions: ActionNews[];
  steps: StepNews[];
  end: EndNews | null;
  forgotten: number;
  overflow: number;
  // Of a run that has ended: the time between two rows.
  every_s?: number;
}

export interface FailedNews {
  count: number;
  sentence: string;
}

// What an agent did and used in the last second.
export interface AgentNews {
  name: string;
  clients: number;
  sent_per_s: number;
  received_per_s: number;
  bytes_out_per_s: number;
  bytes_in_per_s: number;
  send_delay_us: { p99: number | null };
  threads_cpu_percent: number;
  thread_busy_max_percent: number;
  cpu_percent: number | null;
  retransmits_per_s: number | null;
  bus_up_bytes_per_s: number | null;
  bus_down_bytes_per_s: number | null;
}

// One second of a group or a broker.
export interface PartNews {
  by: "group" | "broker";
  name: string;
  connected: number;
  sent_per_s: number;
  received_per_s: number;
  rtt_p50_us: number | null;
  // Brokers only, where known.
  cpu_percent?: number;
  cores_busy_percent?: number;
  rss_bytes?: number;
  bridged_in_per_s?: number;
  bridged_out_per_s?: number;
  bridge_waiting?: number;
  bridge_waiting_bytes?: number;
  bridge_connections_up?: number;
}

// A row of timeseries.csv.
export interface SecondNews {
  clients: number;
  // Present where there are several groups or brokers.
  parts?: PartNews[];
  start_s: number;
  length_s: number;
  phase: string;
  connected: number;
  offered_in_per_s: number;
  sent_per_s: number;
  acked_per_s: number;
  received_per_s: number;
  e2e_p50_us: number | null;
  e2e_p95_us: number | null;
  e2e_p99_us: number | null;
  e2e_max_us: number | null;
  e2e_mean_us: number | null;
  ack_mean_us: number | null;
  ack_p99_us: number | null;
  connect_mean_us: number | null;
  connect_p99_us: number | null;
  connect_failed_per_s: number;
  subscribe_mean_us: number | null;
  subscribe_p99_us: number | null;
  subscribe_failed_per_s: number;
  publish_failed_per_s: number;
  disconnects: number;
  rtt_p50_us: number | null;
  rtt_max_us: number | null;
  bytes_in_per_s: number;
  bytes_out_per_s: number;
  broker_cpu_percent: number | null;
  broker_rss_bytes: number | null;
  generator_cpu_percent: number;
  host_cpu_percent: number | null;
  // Of logins by a schedule; null without any.
  login_accepted_per_s: number | null;
  login_refused_per_s: number | null;
  login_undecided_per_s: number | null;
  login_p50_us: number | null;
  login_p99_us: number | null;
  login_max_us: number | null;
}

export type CpuState =
  | "user" | "nice" | "system" | "irq" | "softirq" | "iowait" | "steal" | "idle";

export interface HostNews {
  at_s: number;
  host: {
    host: string;
    source: string;
    target: string | null;
    cpu: Record<CpuState, number> | null;
    load: [number, number, number] | null;
    memory: {
      total: number;
      used: number;
      buffered: number;
      cached: number;
      free: number;
      slab_reclaimable: number | null;
      slab_unreclaimable: number | null;
    } | null;
    interfaces: { name: string; rx_bytes_per_s: number; tx_bytes_per_s: number }[];
    disks: {
      name: string;
      read_bytes_per_s: number;
      written_bytes_per_s: number;
      reads_per_s: number;
      writes_per_s: number;
      busy_percent: number | null;
      read_wait_us: number | null;
      write_wait_us: number | null;
    }[];
    file_systems: { mount_point: string; used: number; available: number }[];
    processes: {
      name: string;
      pid: number | null;
      cpu_percent: number | null;
      rss_bytes: number | null;
    }[];
  };
}
