// Messages of a connection: the newest, a bounded number of them with bounded payloads.

import type { Answer } from "./exchange";
import type { Qos } from "./packets";

export const MESSAGES_MAX = 200;
// Bytes of a payload that are kept.
export const PAYLOAD_BYTES_MAX = 16 * 1024;

export interface LoggedMessage {
  number: number;
  timeMs: number;
  isOut: boolean;
  topic: string;
  qos: Qos;
  retain: boolean;
  dup: boolean;
  // Its beginning.
  payload: Uint8Array;
  payloadBytes: number;
  // Of one that was sent; null: it is not there yet.
  answer: Answer | null;
}

type Given = Omit<LoggedMessage, "number" | "payloadBytes">;

export class MessageLog {
  private kept: LoggedMessage[] = [];
  private last = 0;
  private gone = 0;
  received = 0;
  sent = 0;

  // The newest first.
  rows(): LoggedMessage[] {
    return [...this.kept].reverse();
  }

  // Messages that made place for newer ones.
  get dropped(): number {
    return this.gone;
  }

  // The number that the next one gets.
  get next(): number {
    return this.last + 1;
  }

  add(message: Given): void {
    this.last += 1;
    if (message.isOut) this.sent += 1;
    else this.received += 1;
    const payload = message.payload.slice(0, PAYLOAD_BYTES_MAX);
    const payloadBytes = message.payload.length;
    this.kept.push({ ...message, payload, payloadBytes, number: this.last });
    if (this.kept.length > MESSAGES_MAX) {
      this.kept.shift();
      this.gone += 1;
    }
  }

  answered(number: number, answer: Answer): void {
    this.kept = this.kept.map((row) => (row.number === number ? { ...row, answer } : row));
  }

  clear(): void {
    this.kept = [];
    this.gone = 0;
  }
}
