// Requests for the broker, which the console passes on to its management API.

import { endpoint, get, send } from "../api";
import { useLoad } from "../load";
import type { Loaded } from "../load";
import { useIsOperator } from "../machine";

export function ask<T>(
  pieces: string[],
  query: Record<string, string> = {},
  signal: AbortSignal | null = null,
): Promise<T> {
  return get<T>(["broker", ...pieces], new URLSearchParams(query), signal);
}

export function act<T>(
  method: "POST" | "DELETE",
  pieces: string[],
  query: Record<string, string> = {},
  body: unknown = {},
): Promise<T> {
  return send<T>(method, ["broker", ...pieces], body, null, new URLSearchParams(query));
}

export function eventsAddress(query: Record<string, string>): string {
  return endpoint(["broker", "events"], new URLSearchParams(query));
}

export function useBroker<T>(
  pieces: string[],
  query: Record<string, string> = {},
  keep = false,
): Loaded<T> {
  const key = `broker ${JSON.stringify([pieces, query])}`;
  return useLoad<T>(key, (signal) => ask<T>(pieces, query, signal), keep);
}

// What the viewer may do at the broker: by the token, and by the console's key.
function useRole(): string {
  const isOperator = useIsOperator();
  const session = useBroker<{ role: string }>(["session"], {}, true);
  return isOperator && session.data !== null ? session.data.role : "viewer";
}

// Whether the viewer may change something.
export function useMayOperate(): boolean {
  return useRole() !== "viewer";
}

// Whether the viewer may also do what is for administrators of the broker.
export function useMayAdminister(): boolean {
  return useRole() === "administrator";
}
