// How the clock of an agent stands to the console's machine.

import type { Agent } from "../types";

const NS_PER_MS = 1e6;

// How far it is ahead, and how well that is known.
export function clockOf(
  agent: Pick<Agent, "clock_shift_ns" | "clock_error_ns">,
  words: { own: string; silent: string },
): string {
  const { clock_shift_ns: shift, clock_error_ns: error } = agent;
  if (shift === null || error === null) return words.silent;
  if (shift === 0 && error === 0) return words.own;
  const ahead = -shift / NS_PER_MS;
  return `${ahead < 0 ? "−" : "+"}${Math.abs(ahead).toFixed(3)} ± ${(error / NS_PER_MS).toFixed(3)} ms`;
}
