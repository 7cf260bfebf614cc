// Conditions of a run against its seconds. The record judges the whole window; a second only shows
// which way it goes.

import type { Unit } from "./data";
import type { SecondNews, ThresholdNews } from "./news";
import { busiest, largest } from "./panels";

export interface ThresholdState {
  threshold: ThresholdNews;
  // Seconds of the measured phase with a value, and those that missed the condition.
  seconds: number;
  missed: number;
  // The value of the latest of them, and the one furthest on the wrong side.
  latest: number | null;
  worst: number | null;
}

// The unit of a figure with a threshold.
export function unitOf(figure: string): Unit {
  if (/_(mean|p\d+|max)$/.test(figure)) return "latency";
  if (figure === "tps") return "rate";
  if (figure === "broker_rss") return "bytes";
  return /cpu|memory|loss|achieved/.test(figure) ? "percent" : "number";
}

// The value of a second for a figure with a threshold; null where no second has one.
export function figureOf(figure: string, row: SecondNews): number | null {
  switch (figure) {
    case "e2e_mean":
      return row.e2e_mean_us;
    case "e2e_p50":
      return row.e2e_p50_us;
    case "e2e_p95":
      return row.e2e_p95_us;
    case "e2e_p99":
      return row.e2e_p99_us;
    case "e2e_max":
      return row.e2e_max_us;
    case "ack_mean":
      return row.ack_mean_us;
    case "ack_p99":
      return row.ack_p99_us;
    case "connect_mean":
      return row.connect_mean_us;
    case "connect_p99":
      return row.connect_p99_us;
    case "rtt_p50":
      return row.rtt_p50_us;
    case "rtt_max":
      return row.rtt_max_us;
    case "tps":
      return (row.acked_per_s > 0 ? row.acked_per_s : row.sent_per_s) + row.received_per_s;
    case "broker_cpu":
      return busiest(row);
    case "broker_rss":
      return largest(row);
    case "host_cpu":
      return row.host_cpu_percent;
    default:
      return null;
  }
}

export function holds({ symbol, limit }: ThresholdNews, value: number): boolean {
  switch (symbol) {
    case "<":
      return value < limit;
    case "<=":
      return value <= limit;
    case ">":
      return value > limit;
    case ">=":
      return value >= limit;
    case "==":
      return value === limit;
  }
}

export class Thresholds {
  private states: ThresholdState[] = [];

  // Begins anew with the conditions of a run.
  begin(thresholds: ThresholdNews[]): void {
    this.states = thresholds.map((threshold) => ({
      threshold,
      seconds: 0,
      missed: 0,
      latest: null,
      worst: null,
    }));
  }

  // Only whole seconds of the measured phase count.
  push(row: SecondNews): void {
    if (row.phase !== "measure" || row.length_s < 0.5) return;
    for (const state of this.states) {
      const value = figureOf(state.threshold.figure, row);
      if (value === null) continue;
      const { symbol } = state.threshold;
      const wantsMore = symbol === ">" || symbol === ">=";
      state.seconds += 1;
      state.latest = value;
      if (!holds(state.threshold, value)) state.missed += 1;
      const worse = state.worst === null || (wantsMore ? value < state.worst : value > state.worst);
      if (worse) state.worst = value;
    }
  }

  all(): ThresholdState[] {
    return this.states;
  }

  conditions(): ThresholdNews[] {
    return this.states.map(({ threshold }) => threshold);
  }
}
