// Requests to the API.

import { Store } from "./store";
import type { Problem } from "./types";

const BASE = "/api/v1";

export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly field: string | null = null,
    readonly problems: Problem[] = [],
    // The message in Chinese, where the program knows it.
    readonly messageZh?: string,
  ) {
    super(message);
  }
}

// Without a valid token every request is refused: then the page says where the link is found.
export const isAdmitted = new Store(true);

// The address of a part of the API; each piece of the path is encoded.
export function endpoint(pieces: string[], query: URLSearchParams | null = null): string {
  const path = `${BASE}/${pieces.map(encodeURIComponent).join("/")}`;
  const text = query?.toString() ?? "";
  return text === "" ? path : `${path}?${text}`;
}

interface Failure {
  error?: { message?: string; message_zh?: string; field?: string | null };
  problems?: Problem[];
}

// The error that an answer of the server means.
export function failureOf(status: number, text: string): ApiError {
  let failure: Failure | null = null;
  try {
    failure = JSON.parse(text) as Failure | null;
  } catch {
    // A proxy's page, for instance.
  }
  const { message = `HTTP ${status}`, message_zh: zh, field = null } = failure?.error ?? {};
  return new ApiError(message, status, field, failure?.problems ?? [], zh);
}

async function call<T>(method: string, address: string, init: RequestInit): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch(address, { method, credentials: "same-origin", ...init });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError("", 0);
  }
  if (answer.status === 401) isAdmitted.set(false);
  const text = await answer.text();
  if (!answer.ok) throw failureOf(answer.status, text);
  return (text === "" ? null : JSON.parse(text)) as T;
}

export function get<T>(
  pieces: string[],
  query: URLSearchParams | null = null,
  signal: AbortSignal | null = null,
): Promise<T> {
  return call<T>("GET", endpoint(pieces, query), { signal });
}

export function send<T>(
  method: "POST" | "PATCH" | "DELETE",
  pieces: string[],
  body: unknown = {},
  signal: AbortSignal | null = null,
  query: URLSearchParams | null = null,
): Promise<T> {
  const init = {
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    signal,
  };
  return call<T>(method, endpoint(pieces, query), init);
}

export function upload<T>(file: File): Promise<T> {
  const query = new URLSearchParams({ name: file.name });
  const headers = { "content-type": "application/octet-stream" };
  return call<T>("POST", endpoint(["uploads"], query), { headers, body: file });
}
