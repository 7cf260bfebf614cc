// Where the broker's WebSocket listeners are, as a browser reaches them.

import type { Listener } from "../types";

export interface Offer {
  address: string;
  // This page may not open it: the listener admits those of others.
  isClosedToPage: boolean;
}

// `place`: where the management API is; `host` and `origin`: of this page.
export function offersOf(
  listeners: Listener[],
  place: string,
  { host, origin }: { host: string; origin: string },
): Offer[] {
  // The host of a management API by HTTP is that of the broker; a socket is on the console's own.
  const remote = /^https?:\/\/(.+?)(?::\d+)?$/.exec(place)?.[1] ?? host;
  return listeners.flatMap(({ address, transport, path, origins }) => {
    if (transport !== "ws" && transport !== "wss") return [];
    const [, own = "", port = ""] = /^(.*):(\d+)$/.exec(address) ?? [];
    const name = own === "0.0.0.0" || own === "[::]" ? remote : own;
    return [
      {
        address: `${transport}://${name}:${port}${path ?? "/mqtt"}`,
        isClosedToPage: origins !== undefined && !origins.includes(origin),
      },
    ];
  });
}

// A client identifier that no other page has.
export function freshClientId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(4));
  return `web-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
