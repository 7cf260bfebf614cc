// Changes of runs as the server tells them, for lists that stay up to date.

import { useEffect, useRef } from "preact/hooks";

import { endpoint } from "./api";
import type { Queue, Row } from "./types";

export type RunChange =
  | { type: "run"; row: Row }
  | { type: "removed"; id: string }
  | ({ type: "queue" } & Queue)
  // The connection is there again: something may have been missed.
  | { type: "again" };

const listeners = new Set<(change: RunChange) => void>();
let source: EventSource | null = null;
let wasLost = false;

function tell(change: RunChange): void {
  for (const listener of [...listeners]) listener(change);
}

function connect(): void {
  if (source !== null || typeof EventSource === "undefined") return;
  source = new EventSource(endpoint(["events"]));
  source.onmessage = (event: MessageEvent<string>) => {
    try {
      tell(JSON.parse(event.data) as RunChange);
    } catch {
      // Of a newer server.
    }
  };
  source.onerror = () => {
    wasLost = true;
  };
  source.onopen = () => {
    if (wasLost) tell({ type: "again" });
    wasLost = false;
  };
}

// Calls `take` for every change while the component is shown.
export function useChanges(take: (change: RunChange) => void): void {
  const latest = useRef(take);
  latest.current = take;
  useEffect(() => {
    const listener = (change: RunChange) => latest.current(change);
    listeners.add(listener);
    connect();
    return () => {
      listeners.delete(listener);
      if (listeners.size > 0) return;
      source?.close();
      source = null;
    };
  }, []);
}
