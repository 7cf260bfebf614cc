// The agents of a live run: the cells of their table.

import { bytes, latency, rate, thousands } from "./format";
import type { AgentNews } from "./news";

// The columns after that of the names, as in the table of the report.
export const AGENT_COLUMNS = [
  "clients", "sent", "received", "network", "cpu", "busiest", "late", "resent", "bus",
] as const;
export type AgentColumn = (typeof AGENT_COLUMNS)[number];

function or<T>(value: T | null, show: (value: T) => string): string {
  return value === null ? "–" : show(value);
}

function percent(value: number): string {
  return `${value.toFixed(1)} %`;
}

export function agentCells(agent: AgentNews): Record<AgentColumn, string> {
  const { bus_up_bytes_per_s: up, bus_down_bytes_per_s: down } = agent;
  return {
    clients: thousands(agent.clients),
    sent: rate(agent.sent_per_s),
    received: rate(agent.received_per_s),
    network: `${bytes(agent.bytes_out_per_s + agent.bytes_in_per_s)}/s`,
    cpu: percent(agent.cpu_percent ?? agent.threads_cpu_percent),
    busiest: percent(agent.thread_busy_max_percent),
    late: or(agent.send_delay_us.p99, latency),
    resent: or(agent.retransmits_per_s, rate),
    bus: up === null || down === null ? "–" : `${bytes(up + down)}/s`,
  };
}
