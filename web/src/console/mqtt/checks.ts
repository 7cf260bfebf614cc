// What a user writes, before it is sent.

import { utf8 } from "./bytes";

const TEXT_BYTES_MAX = 65_535;

export type TopicFault = "empty" | "long" | "null" | "wildcard" | "place" | "share";

function textFault(text: string): TopicFault | null {
  if (text === "") return "empty";
  if (text.includes("\0")) return "null";
  return utf8(text).length > TEXT_BYTES_MAX ? "long" : null;
}

// What is wrong with the topic of a message.
export function topicFault(topic: string): TopicFault | null {
  return textFault(topic) ?? (/[#+]/.test(topic) ? "wildcard" : null);
}

// What is wrong with a filter to subscribe to (MQTT 5.0, 4.7 and 4.8.2).
export function filterFault(filter: string): TopicFault | null {
  const fault = textFault(filter);
  if (fault !== null) return fault;
  let levels = filter.split("/");
  if (levels[0] === "$share") {
    const [, group, ...rest] = levels;
    if (!group || /[#+]/.test(group) || rest.join("/") === "") return "share";
    levels = rest;
  }
  const isPlaced = levels.every(
    (level, index) =>
      level === "+" || (level === "#" && index === levels.length - 1) || !/[#+]/.test(level),
  );
  return isPlaced ? null : "place";
}

export type Format = "text" | "json" | "hex";
export type PayloadFault = "json" | "hex";

// The bytes of a payload as it is written; a fault where it is none.
export function payloadOf(text: string, format: Format): Uint8Array | PayloadFault {
  if (format === "hex") {
    const digits = text.replace(/[\s:,]/g, "").replace(/^0x/i, "");
    if (digits.length % 2 > 0 || /[^\da-f]/i.test(digits)) return "hex";
    return Uint8Array.from(digits.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
  }
  if (format === "json") {
    try {
      JSON.parse(text);
    } catch {
      return "json";
    }
  }
  return utf8(text);
}

// A payload for people. What is no UTF-8, or no JSON, is shown as what it is.
export function shownPayload(
  payload: Uint8Array,
  format: Format,
  isCut: boolean,
): { format: Format; text: string } {
  if (format !== "hex") {
    const text = textOf(payload, isCut);
    if (text !== null && format === "text") return { format, text };
    const json = text === null || isCut ? null : indented(text);
    if (json !== null) return { format: "json", text: json };
    if (text !== null) return { format: "text", text };
  }
  const pairs = Array.from(payload, (byte) => byte.toString(16).padStart(2, "0"));
  return { format: "hex", text: pairs.join(" ") };
}

function textOf(payload: Uint8Array, isCut: boolean): string | null {
  try {
    // Where it was cut within a character, the rest of the character is missing.
    const text = new TextDecoder("utf-8", { fatal: true }).decode(payload, { stream: isCut });
    return /[\0-\x08\x0e-\x1f\x7f]/.test(text) ? null : text;
  } catch {
    return null;
  }
}

function indented(text: string): string | null {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return null;
  }
}

// The address of a WebSocket as it is used; null where it is none.
export function socketAddress(text: string): string | null {
  if (!/^wss?:\/\//i.test(text.trim())) return null;
  let url: URL;
  try {
    url = new URL(text.trim());
  } catch {
    return null;
  }
  // Users and passwords have fields of their own, and are in no address.
  if (url.username !== "" || url.password !== "" || url.hash !== "" || url.hostname === "") return null;
  if (url.pathname === "/" && !text.trim().endsWith("/")) url.pathname = "/mqtt";
  return url.href;
}

// Whether what is sent there can be read on the way.
export function isReadable(address: string): boolean {
  const url = new URL(address);
  const isOwn = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);
  return url.protocol === "ws:" && !isOwn;
}
