// What is known of the machine, loaded once; and whether this viewer may change things.

import { get } from "./api";
import { Store, useStore } from "./store";
import type { Machine } from "./types";

const machine = new Store<Machine | null>(null);
const isUnknown = new Store(false);

export async function loadMachine(): Promise<void> {
  try {
    machine.set(await get<Machine>(["machine"]));
    isUnknown.set(false);
  } catch {
    // Pages do without it, and say themselves when the console does not answer.
    isUnknown.set(true);
  }
}

export function useMachine(): Machine | null {
  return useStore(machine);
}

// The machine could not be asked.
export function useIsMachineUnknown(): boolean {
  return useStore(isUnknown);
}

export function useIsOperator(): boolean {
  return useStore(machine)?.role !== "viewer";
}
