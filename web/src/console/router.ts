// The address is the state of the pages: a path and a query.

import { Store, useStore } from "./store";

export interface Place {
  path: string;
  query: URLSearchParams;
}

export type Route =
  | { page: "home" | "new" | "records" | "trash" | "compare" | "trends" | "agents" | "unknown" }
  | { page: "run"; id: string }
  // The pages of the broker: the part, and what it is about.
  | { page: "broker"; pieces: string[] };

// The page of a path; null where the path belongs to the server, such as files of runs.
export function routeOf(path: string): Route | null {
  switch (path) {
    case "/":
      return { page: "home" };
    case "/new":
      return { page: "new" };
    case "/runs":
      return { page: "records" };
    case "/trash":
      return { page: "trash" };
    case "/compare":
      return { page: "compare" };
    case "/trends":
      return { page: "trends" };
    case "/agents":
      return { page: "agents" };
    default:
  }
  const run = /^\/runs\/([^/]+)$/.exec(path);
  const broker = /^\/broker(?:\/(.*))?$/.exec(path);
  try {
    if (run !== null) return { page: "run", id: decodeURIComponent(run[1]!) };
    if (broker === null) return null;
    const pieces = (broker[1] ?? "").split("/").filter((piece) => piece !== "");
    return { page: "broker", pieces: pieces.map(decodeURIComponent) };
  } catch {
    return { page: "unknown" };
  }
}

// An address from a path and parts of a query; empty parts are left out.
export function address(
  path: string,
  parts: Record<string, string | null | undefined> = {},
): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parts)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, value);
  }
  const text = query.toString();
  return text === "" ? path : `${path}?${text}`;
}

export function runAddress(id: string): string {
  return `/runs/${encodeURIComponent(id)}`;
}

// The page that opens WebSockets. It alone may by the policy that it is served with, and a policy
// holds for as long as its document: so the page is a document of its own.
const SOCKET_PAGE = "/broker/websocket";

// Whether a page belongs to another document than the one at hand.
export function isElsewhere(from: string, to: string): boolean {
  return (from === SOCKET_PAGE) !== (to === SOCKET_PAGE);
}

function here(): Place {
  if (typeof location === "undefined") return { path: "/", query: new URLSearchParams() };
  return { path: location.pathname, query: new URLSearchParams(location.search) };
}

export const place = new Store<Place>(here());

export function usePlace(): Place {
  return useStore(place);
}

// Goes to an address; `replace`: the way back does not lead here.
export function navigate(to: string, options: { replace?: boolean } = {}): void {
  const before = place.get().path;
  if (isElsewhere(before, new URL(to, location.href).pathname)) return location.assign(to);
  if (options.replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  place.set(here());
  if (place.get().path !== before) arrived();
}

// Changes parts of the query and keeps the others.
export function query(
  parts: Record<string, string | null>,
  options: { push?: boolean } = {},
): void {
  const { path, query: now } = here();
  const next = new URLSearchParams(now);
  for (const [name, value] of Object.entries(parts)) {
    if (value === null || value === "") next.delete(name);
    else next.set(name, value);
  }
  const text = next.toString();
  if (text === now.toString()) return;
  navigate(text === "" ? path : `${path}?${text}`, { replace: options.push !== true });
}

// A new page begins at its top, and so does the keyboard.
function arrived(): void {
  scrollTo(0, 0);
  requestAnimationFrame(() => document.getElementById("content")?.focus({ preventScroll: true }));
}

// Follows links between pages without loading them, and the browser's way back.
export function followLinks(): void {
  addEventListener("popstate", () => place.set(here()));
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element | null)?.closest?.("a");
    if (!link || link.target !== "" || link.hasAttribute("download")) return;
    if (link.origin !== location.origin || link.hash !== "" || routeOf(link.pathname) === null)
      return;
    if (isElsewhere(location.pathname, link.pathname)) return;
    event.preventDefault();
    navigate(link.pathname + link.search);
  });
}
