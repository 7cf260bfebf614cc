// What the API sends and takes, as docs of `tacho serve` describe it.

export type State = "queued" | "running" | "finished" | "canceled" | "broken";

export interface Both {
  en: string;
  zh: string;
}

// How far a run is: facts that hold for a while; pages work out the seconds.
export interface Progress {
  phase: string;
  number: number;
  of: number;
  since: string;
  planned_s: number | null;
  // Of the run, or of the step where there are several.
  step_since: string;
  step_planned_s: number;
  step: { number: number; of: number | null; title: string } | null;
  // Of the steps so far, each with its number.
  verdicts: Record<string, number>;
  failures: number;
  // Thresholds that the latest second misses.
  missed: number;
}

export interface Row {
  id: string;
  name: string;
  kind: string;
  state: State;
  verdict: string | null;
  verdict_text: Both | null;
  scenario: string;
  target: string;
  version: string;
  started: string | null;
  ended: string | null;
  duration_s: number | null;
  attempted_tps: number | null;
  achieved_tps: number | null;
  loss_percent: number | null;
  e2e_latency_us_p99: number | null;
  cpu_percent: number | null;
  cpu_75_tps: number | null;
  tags: string[];
  starred: boolean;
  note: string;
  has_report: boolean;
  position: number | null;
  progress?: Progress | null;
  baseline?: boolean;
}

export interface TrashRow extends Row {
  // Null where it was moved there by hand.
  deleted: string | null;
  bytes: number | null;
}

export interface Trash {
  rows: TrashRow[];
  total: number;
  bytes: number | null;
}

export interface Removed {
  removed: number;
  bytes: number | null;
}

export interface Page {
  rows: Row[];
  next: string | null;
  total: number;
  facets?: { scenarios: string[]; tags: string[] };
}

export type Kind =
  "integer" | "number" | "text" | "choice" | "duration" | "size" | "rate" | "percent" | "boolean";

export interface Variable {
  name: string;
  kind: Kind;
  unit: string | null;
  unit_zh?: string | null;
  default: string;
  minimum: number | null;
  maximum: number | null;
  choices: string[] | null;
  help: string;
  help_zh?: string | null;
}

export interface Scenario {
  name: string;
  title: string;
  group: string;
  summary: string;
  summary_zh?: string;
  variables: Variable[];
}

export interface Suite {
  name: string;
  summary?: string;
  summary_zh?: string;
}

export interface Catalogue {
  scenarios: Scenario[];
  suites: (string | Suite)[];
  published: string[];
}

export interface Problem {
  field: string | null;
  // In English, and in Chinese where the program knows the sentence, with its code and values.
  message: string;
  message_zh?: string;
  code?: string;
  parameters?: Record<string, string>;
}

// A data file that a plan reads.
export interface PlanFile {
  name: string;
  line: number;
  element: string;
  columns: string[];
  // Without a line of names; null while the file is not there.
  rows: number | null;
  rows_per_machine: number | null;
  is_there: boolean;
}

// What a data file holds.
export interface Table {
  lines: number;
  columns: string[];
  delimiter: string;
  first: string[][];
  is_whole: boolean;
}

export interface Upload {
  upload: string;
  name: string;
  kind: "plan" | "scenario" | "data";
  bytes?: number | null;
  // Null where they cannot be told, and of data.
  variables?: Variable[] | null;
  groups?: { name: string; virtual_users: number }[] | null;
  files?: PlanFile[] | null;
  table?: Table;
  problems: Problem[];
}

export type Command = "run" | "ladder" | "capacity" | "suite" | "compare";

export interface Request {
  command?: Command;
  scenario?: string;
  upload?: string;
  data?: string[];
  variables?: Record<string, string>;
  broker?: string | string[];
  credentials?: { username: string; password_file: string } | null;
  tls?: { ca_file: string | null; cert_file: string | null; key_file: string | null } | null;
  virtual_users?: Record<string, number>;
  machines?: number | null;
  agents?: string[];
  bus?: string;
  bus_credentials?: string;
  loops?: number | "forever" | null;
  rows?: "split" | "copy" | null;
  ramp_up_s?: number | null;
  duration_s?: number | null;
  warmup_s?: number | null;
  repeat?: number | null;
  name?: string;
  note?: string;
  tags?: string[];
  thresholds?: string[];
  monitors?: string[];
  outputs?: string[];
  objectives?: string[];
  variable?: string | null;
  steps?: string;
  stop_when?: string[];
  only?: string[];
}

// A run as a request that can be changed.
export interface Draft {
  request: Request;
  uploads: Upload[];
  // Flags of its command line that the form has no field for.
  left_out: string[];
}

export interface Offered {
  clients: number;
  publishers: number;
  subscribers: number;
  messages_in_per_s: number | null;
  messages_out_per_s: number | null;
  bytes_in_per_s: number | null;
  bytes_out_per_s: number | null;
  duration_s: number | null;
  descriptors: number | null;
  cores?: number | null;
}

export interface Preview {
  // Null where the request makes none.
  command_line: string | null;
  scenario_toml: string | null;
  offered: Offered | null;
  // Of a scenario that the catalogue does not have.
  variables?: Variable[] | null;
  warnings: string[];
  warnings_zh?: string[];
  problems: Problem[];
}

export interface Started {
  id: string;
  state?: State;
  position?: number;
}

export interface Queue {
  running: Row | null;
  queued: Row[];
  held_by: string | null;
  held_by_zh?: string | null;
}

export interface Machine {
  doctor: { level: "ok" | "warning" | "problem"; text: string; text_zh?: string }[];
  cores: number;
  version: string;
  role?: "viewer" | "operator";
  calibrated?: boolean;
  directory?: string;
  // Where the broker is that the console was given; null: there is none.
  broker?: string | null;
  // Where the bus is whose agents are shown; null: there is none.
  bus?: string | null;
}

// A load machine on the bus.
export interface Agent {
  name: string;
  // The run that it works for; null: it is free.
  run: string | null;
  version: string;
  labels: Record<string, string>;
  threads: number;
  cores: number | null;
  memory_bytes: number | null;
  descriptors: number | null;
  addresses: string[];
  calibrated_messages_per_s: number | null;
  // What is to be added to its clock to get this machine's; null: it did not answer.
  clock_shift_ns: number | null;
  clock_error_ns: number | null;
}

export interface Words {
  reasons: string[];
  findings: { severity: string; text: string }[];
  notes: string[];
}

export interface Latency {
  count: number;
  mean: number | null;
  p50: number | null;
  p90: number | null;
  p95: number | null;
  p99: number | null;
  p999: number | null;
  max: number | null;
}

// One measured window of `summary.json`, as far as the pages show it.
export interface Step {
  verdict: string;
  label: string;
  series: string;
  window_s: number;
  directory?: string;
  offered_in_per_s: number;
  offered_out_per_s: number;
  attempted_in_per_s: number;
  achieved_in_per_s: number;
  achieved_out_per_s: number;
  tps: number;
  latency_us: Latency;
  service_us?: Latency;
  send_delay_us?: Latency;
  ack_us?: Latency;
  rtt_us?: Latency;
  connect_us?: Latency;
  sent: number;
  expected: number;
  received: number;
  lost: number;
  duplicates: number;
  out_of_order: number;
  refused: number;
  cpu_percent: number | null;
  whose_cpu: string | null;
  broker_cpu_percent: number | null;
  broker_rss_bytes: number | null;
  host_cpu_percent: number | null;
  generator_cpu_percent: number | null;
}

export interface Summary {
  kind: string;
  scenario: string;
  name: string;
  description: string;
  description_zh?: string;
  started_at: string;
  elapsed_s: number;
  tool_version: string;
  verdict: string;
  reasons: string[];
  notes: string[];
  clients: number;
  clients_connected: number;
  client_failures: number;
  first_failures: string[];
  connect_per_s?: number | null;
  connect_us?: Latency;
  target: { broker: string; version: string };
  thresholds: { condition: string; value: number | null; passed: boolean }[];
  headlines?: { name: string; label: string; value: number | null; unit: string; group?: string }[];
  steps: Step[];
  findings: { code: string; severity: string; sentence: string; place?: string }[];
}

export interface RunFile {
  // Its path below the run's directory.
  name: string;
  bytes: number;
  kind: "report" | "record" | "settings" | "table" | "histogram" | "samples" | "log";
}

export interface Run extends Row {
  summary: Summary | null;
  request: Request | null;
  command_line: string | null;
  problems: Problem[];
  files?: RunFile[];
  // There are more than are listed.
  files_cut?: boolean;
  // The baseline of its scenario, where that is another run.
  baseline_run?: string | null;
  words?: { en: Words; zh: Words };
  scenario_toml?: string | null;
}

export type Judgement = "better" | "worse" | "mixed" | "no_change" | "unclear";

export interface Change {
  side: string;
  change: number | null;
  low: number | null;
  high: number | null;
  floor: number | null;
  verdict: Judgement;
  reason: string;
}

export interface Figure {
  name: string;
  label: string;
  unit: string;
  better: string;
  scale: "percent" | "absolute";
  sides: { values: number[]; median: number | null; min: number | null; max: number | null }[];
  changes: Change[];
}

export interface Difference {
  name: string;
  values: string[];
}

export interface Comparison {
  name: string;
  scenario: string;
  interleaved: boolean;
  verdict: Judgement;
  sides: { name: string; label: string; repeats: { counts: boolean }[] }[];
  points: { label: string; verdict: Judgement; figures: Figure[] }[];
  environment: Difference[];
  scenario_differences: Difference[];
  notes: string[];
}

export type TrendFigure = "p99" | "achieved_tps" | "cpu_percent" | "cpu_75_tps" | "loss_percent";

export interface TrendPoint {
  id: string;
  started: string;
  version: string;
  target: string;
  value: number | null;
  name?: string;
  verdict?: string | null;
}

export interface Trends {
  points: TrendPoint[];
  changes: number[];
}
