// A test that is being configured: in the form, in the address, and as the API takes it.

import type { Command, Problem, Request } from "../types";

// All values as they were typed; empty ones are left to the scenario.
export interface Draft {
  command: Command;
  // A scenario, a name of the BifroMQ report, or a suite.
  scenario: string;
  // The uploaded plan or scenario file instead.
  upload: string;
  data: string[];
  // Those that differ from their defaults.
  variables: Record<string, string>;
  // Empty: Tacho's own.
  broker: string;
  brokers: string[];
  user: string;
  passwordFile: string;
  ca: string;
  cert: string;
  key: string;
  virtualUsers: Record<string, string>;
  machines: string;
  // Agents that make the load, with commas between; empty: this machine.
  agents: string;
  bus: string;
  busCredentials: string;
  // Empty: as the plan says; else `forever` or a number.
  loops: string;
  // Empty: as the plan says; else `split` or `copy`.
  rows: string;
  rampUp: string;
  duration: string;
  warmup: string;
  repeat: string;
  name: string;
  note: string;
  tags: string;
  thresholds: string[];
  monitors: string[];
  outputs: string[];
  objectives: string[];
  // What a search makes as large as possible.
  variable: string;
  steps: string;
  stopWhen: string[];
  only: string[];
}

export const COMMANDS: Command[] = ["run", "ladder", "capacity", "compare", "suite"];

export const EMPTY: Draft = {
  command: "run",
  scenario: "",
  upload: "",
  data: [],
  variables: {},
  broker: "",
  brokers: ["builtin", ""],
  user: "",
  passwordFile: "",
  ca: "",
  cert: "",
  key: "",
  virtualUsers: {},
  machines: "",
  agents: "",
  bus: "",
  busCredentials: "",
  loops: "",
  rows: "",
  rampUp: "",
  duration: "",
  warmup: "",
  repeat: "",
  name: "",
  note: "",
  tags: "",
  thresholds: [],
  monitors: [],
  outputs: [],
  objectives: [],
  variable: "",
  steps: "",
  stopWhen: [],
  only: [],
};

const TEXTS = [
  "scenario",
  "upload",
  "broker",
  "user",
  "passwordFile",
  "ca",
  "cert",
  "key",
  "machines",
  "agents",
  "bus",
  "busCredentials",
  "loops",
  "rows",
  "rampUp",
  "duration",
  "warmup",
  "repeat",
  "name",
  "note",
  "tags",
  "variable",
  "steps",
] as const;
const LISTS = [
  "data",
  "thresholds",
  "monitors",
  "outputs",
  "objectives",
  "stopWhen",
  "only",
] as const;
const MAPS = [
  ["variables", "v."],
  ["virtualUsers", "g."],
] as const;

export function toQuery(draft: Draft): URLSearchParams {
  const query = new URLSearchParams();
  if (draft.command !== "run") query.set("command", draft.command);
  for (const name of TEXTS) if (draft[name] !== "") query.set(name, draft[name]);
  for (const name of LISTS) for (const value of draft[name]) query.append(name, value);
  if (draft.brokers.join() !== EMPTY.brokers.join()) {
    for (const broker of draft.brokers) query.append("brokers", broker);
  }
  for (const [name, prefix] of MAPS) {
    for (const [key, value] of Object.entries(draft[name])) query.set(prefix + key, value);
  }
  return query;
}

export function fromQuery(query: URLSearchParams): Draft {
  const draft: Draft = { ...EMPTY, variables: {}, virtualUsers: {} };
  const command = COMMANDS.find((known) => known === query.get("command"));
  if (command !== undefined) draft.command = command;
  for (const name of TEXTS) draft[name] = query.get(name) ?? "";
  for (const name of LISTS) draft[name] = query.getAll(name);
  if (query.has("brokers")) draft.brokers = query.getAll("brokers");
  for (const [key, value] of query) {
    for (const [name, prefix] of MAPS) {
      if (key.startsWith(prefix)) draft[name][key.slice(prefix.length)] = value;
    }
  }
  return draft;
}

// The form of a request that was made before.
export function fromRequest(request: Request): Draft {
  const broker = request.broker ?? "builtin";
  const shown = (value: number | null | undefined) => (value == null ? "" : String(value));
  return {
    ...EMPTY,
    command: request.command ?? "run",
    scenario: request.scenario ?? "",
    upload: request.upload ?? "",
    data: request.data ?? [],
    variables: { ...request.variables },
    broker:
      request.command === "compare" ? "" : [broker].flat().filter(isOther).join(", "),
    brokers: request.command === "compare" && Array.isArray(broker) ? broker : EMPTY.brokers,
    user: request.credentials?.username ?? "",
    passwordFile: request.credentials?.password_file ?? "",
    ca: request.tls?.ca_file ?? "",
    cert: request.tls?.cert_file ?? "",
    key: request.tls?.key_file ?? "",
    virtualUsers: Object.fromEntries(
      Object.entries(request.virtual_users ?? {}).map(([group, count]) => [group, String(count)]),
    ),
    machines: shown(request.machines),
    agents: (request.agents ?? []).join(", "),
    bus: request.bus ?? "",
    busCredentials: request.bus_credentials ?? "",
    loops: request.loops == null ? "" : String(request.loops),
    rows: request.rows ?? "",
    rampUp: shown(request.ramp_up_s),
    duration: shown(request.duration_s),
    warmup: shown(request.warmup_s),
    repeat: shown(request.repeat),
    name: request.name ?? "",
    note: request.note ?? "",
    tags: (request.tags ?? []).join(", "),
    thresholds: request.thresholds ?? [],
    monitors: request.monitors ?? [],
    outputs: request.outputs ?? [],
    objectives: request.objectives ?? [],
    variable: request.variable ?? "",
    steps: request.steps ?? "",
    stopWhen: request.stop_when ?? [],
    only: request.only ?? [],
  };
}

function isOther(broker: string): boolean {
  return broker !== "builtin";
}

// Seconds of a text such as `30`, `30s`, `5m`, `1.5h`; null where it is none.
export function seconds(text: string): number | null {
  const match = /^\s*(\d+(?:\.\d+)?)\s*(ms|s|m|min|h)?\s*$/.exec(text);
  if (match === null) return null;
  const factor = { ms: 0.001, s: 1, m: 60, min: 60, h: 3600 }[match[2] ?? "s"] ?? 1;
  return Number(match[1]) * factor;
}

// A whole number of at least `least`; null where the text is none.
export function whole(text: string, least: number): number | null {
  if (!/^\s*\d+\s*$/.test(text)) return null;
  const value = Number(text);
  return value >= least && Number.isSafeInteger(value) ? value : null;
}

export interface Words {
  time: string;
  count: string;
}

// What the API takes, and what cannot be read as a number. Everything else it checks itself.
export function toRequest(draft: Draft, words: Words): { request: Request; problems: Problem[] } {
  const problems: Problem[] = [];
  const read = <T>(
    field: string,
    text: string,
    parse: (text: string) => T | null,
    message: string,
  ) => {
    if (text.trim() === "") return undefined;
    const value = parse(text);
    if (value === null) problems.push({ field, message });
    return value ?? undefined;
  };
  const request: Request = { command: draft.command, variables: draft.variables };
  const put = <K extends keyof Request>(key: K, value: Request[K] | undefined) => {
    if (value !== undefined) request[key] = value;
  };
  if (draft.upload !== "") put("upload", draft.upload);
  else put("scenario", draft.scenario);
  const filled = (values: string[]) =>
    values.map((value) => value.trim()).filter((value) => value !== "");
  const list = (values: string[]) => (filled(values).length > 0 ? filled(values) : undefined);
  const text = (value: string) => (value.trim() === "" ? undefined : value.trim());
  put("data", list(draft.data));
  // A scenario with several brokers takes an address for each.
  const addresses = filled(draft.broker.split(","));
  put(
    "broker",
    draft.command === "compare"
      ? filled(draft.brokers)
      : addresses.length > 1
        ? addresses
        : (addresses[0] ?? "builtin"),
  );
  if (draft.user !== "" || draft.passwordFile !== "") {
    put("credentials", { username: draft.user.trim(), password_file: draft.passwordFile.trim() });
  }
  if (draft.ca !== "" || draft.cert !== "" || draft.key !== "") {
    put("tls", {
      ca_file: text(draft.ca) ?? null,
      cert_file: text(draft.cert) ?? null,
      key_file: text(draft.key) ?? null,
    });
  }
  const users: Record<string, number> = {};
  for (const [group, value] of Object.entries(draft.virtualUsers)) {
    const count = read(`virtual_users.${group}`, value, (typed) => whole(typed, 1), words.count);
    if (count !== undefined) users[group] = count;
  }
  if (Object.keys(users).length > 0) put("virtual_users", users);
  put(
    "machines",
    read("machines", draft.machines, (typed) => whole(typed, 1), words.count),
  );
  put("agents", list(draft.agents.split(/[,，]/)));
  put("bus", text(draft.bus));
  put("bus_credentials", text(draft.busCredentials));
  const isPlan = draft.upload !== "";
  if (isPlan && draft.loops === "forever") put("loops", "forever");
  else if (isPlan)
    put(
      "loops",
      read("loops", draft.loops, (typed) => whole(typed, 1), words.count),
    );
  if (isPlan && (draft.rows === "split" || draft.rows === "copy")) put("rows", draft.rows);
  put("ramp_up_s", read("ramp_up_s", draft.rampUp, seconds, words.time));
  put("duration_s", read("duration_s", draft.duration, seconds, words.time));
  put("warmup_s", read("warmup_s", draft.warmup, seconds, words.time));
  put(
    "repeat",
    read("repeat", draft.repeat, (typed) => whole(typed, 1), words.count),
  );
  put("name", text(draft.name));
  put("note", text(draft.note));
  const tags = filled(draft.tags.split(/[,，]/));
  if (tags.length > 0) put("tags", tags);
  put("thresholds", list(draft.thresholds));
  put("monitors", list(draft.monitors));
  put("outputs", list(draft.outputs));
  if (draft.command === "capacity") {
    put("objectives", list(draft.objectives));
    put("variable", text(draft.variable));
  }
  if (draft.command === "ladder") {
    put("steps", text(draft.steps));
    put("stop_when", list(draft.stopWhen));
  }
  if (draft.command === "suite") put("only", list(draft.only));
  return { request, problems };
}

// The message of the first problem with a field; items of lists are `thresholds[0]` or
// `thresholds.0`.
export function problemOf(problems: Problem[], field: string): string | undefined {
  const dotted = field.replace(/\[(\d+)\]$/, ".$1");
  return problems.find((problem) => problem.field === field || problem.field === dotted)?.message;
}

// The same for a field whose text becomes a list.
export function problemWithin(problems: Problem[], field: string): string | undefined {
  const own = problems.find((problem) => problem.field?.replace(/\[\d+\]$/, "") === field);
  return own?.message;
}

// A problem in a sentence: the program points into a file, which the form does not show.
export function inShort(message: string): string {
  const [first = "", ...others] = message.split("\n").map((line) => line.trim());
  const pointed = others.flatMap((line) => /^\|?\s*\^+\s+(.+)$/.exec(line)?.[1] ?? []);
  const help = others
    .flatMap((line) => /^= help: (.+)$/.exec(line)?.[1] ?? [])
    .filter((text) => !text.startsWith("the variable "));
  if (pointed.length === 0 && help.length === 0) return message;
  return [[first, ...pointed].join(": "), ...help].join("; ");
}
