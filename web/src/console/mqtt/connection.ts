// A connection of the page: a WebSocket, what was subscribed to, and the messages.

import { Exchange } from "./exchange";
import type { Answer, Ending, ExchangeEvent, Hindrance } from "./exchange";
import { MessageLog } from "./message-log";
import type { ConnectPacket, Qos, Version } from "./packets";

// What waits in the browser to be sent.
const UNSENT_BYTES_MAX = 4 << 20;
const TICK_MS = 5_000;
// However many messages arrive, the page is drawn this often.
const DRAWN_MS = 100;
// What the server may send without an acknowledgement, and in one packet.
const LIMITS = { receiveMaximum: 64, packetBytesMax: 4 << 20, keepAliveSeconds: 60 };

export interface Wanted {
  address: string;
  version: Version;
  clientId: string;
  user: string | null;
  password: string | null;
  isCleanStart: boolean;
  sessionExpirySeconds: number;
}

export interface Subscription {
  filter: string;
  qos: Qos;
  // Null: it is not there yet.
  answer: Answer | null;
}

export type State = "opening" | "connected" | "ended";

// The part of a WebSocket that is used, so that tests have one of their own.
export type Socket = Pick<WebSocket, "send" | "close" | "bufferedAmount" | "binaryType"> & {
  onopen: ((event: never) => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onclose: ((event: never) => void) | null;
};

export class Connection {
  private socket: Socket | null = null;
  private exchange: Exchange | null = null;
  private timer: ReturnType<typeof setInterval> | null = null;
  private drawing: ReturnType<typeof setTimeout> | null = null;
  private readonly listeners = new Set<() => void>();
  private subscribed: Subscription[] = [];
  private now: State = "ended";
  private why: Ending | null = null;
  private present = false;
  private met = false;
  private name: string;
  readonly log = new MessageLog();

  constructor(
    readonly number: number,
    readonly wanted: Wanted,
    private readonly opened: (address: string) => Socket,
  ) {
    this.name = wanted.clientId;
  }

  get state(): State {
    return this.now;
  }

  get ending(): Ending | null {
    return this.why;
  }

  // As it was chosen, or as the server has chosen it.
  get clientId(): string {
    return this.name;
  }

  // The server had kept the session of an earlier connection.
  get isSessionPresent(): boolean {
    return this.present;
  }

  // The server has admitted it, now or earlier.
  get wasConnected(): boolean {
    return this.met;
  }

  get subscriptions(): readonly Subscription[] {
    return this.subscribed;
  }

  // Returns the function that ends it.
  subscribeToChanges(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  open(): void {
    if (this.now !== "ended") return;
    this.now = "opening";
    this.why = null;
    let socket: Socket;
    try {
      socket = this.opened(this.wanted.address);
    } catch {
      // The browser does not open what the policy of the page forbids, such as ws: from https:.
      return this.ended({ by: "network", wasOpen: false });
    }
    socket.binaryType = "arraybuffer";
    const packet: ConnectPacket = { ...this.wanted, ...LIMITS };
    const exchange = new Exchange(
      packet,
      (bytes) => socket.send(bytes as Uint8Array<ArrayBuffer>),
      (event) => this.take(event),
      () => performance.now(),
    );
    [this.socket, this.exchange] = [socket, exchange];
    socket.onopen = () => exchange.begin();
    socket.onmessage = ({ data }) => {
      // A text is no packet, and neither are these bytes.
      const bytes = data instanceof ArrayBuffer ? new Uint8Array(data) : Uint8Array.of(0, 0);
      exchange.take(bytes);
    };
    socket.onclose = () => exchange.lost();
    this.timer = setInterval(() => exchange.tick(), TICK_MS);
    this.changed();
  }

  // Leaves, if it is connected.
  close(): void {
    this.exchange?.leave();
  }

  publish(message: {
    topic: string;
    payload: Uint8Array;
    qos: Qos;
    retain: boolean;
  }): Hindrance | "unsent" | null {
    if ((this.socket?.bufferedAmount ?? 0) > UNSENT_BYTES_MAX) return "unsent";
    if (this.exchange === null) return "not_connected";
    const hindrance = this.exchange.publish(message, this.log.next);
    if (hindrance !== null) return hindrance;
    // QoS 0 has no acknowledgement.
    const answer = message.qos === 0 ? { code: 0, reason: null } : null;
    this.log.add({ ...message, dup: false, isOut: true, timeMs: Date.now(), answer });
    this.changed();
    return null;
  }

  subscribe(filter: string, qos: Qos): Hindrance | null {
    const hindrance = this.exchange === null ? "not_connected" : this.exchange.subscribe(filter, qos);
    if (hindrance !== null) return hindrance;
    const others = this.subscribed.filter((one) => one.filter !== filter);
    this.subscribed = [...others, { filter, qos, answer: null }];
    this.changed();
    return null;
  }

  unsubscribe(filter: string): Hindrance | null {
    return this.exchange === null ? "not_connected" : this.exchange.unsubscribe(filter);
  }

  // One that was refused is taken off the list.
  forget(filter: string): void {
    this.subscribed = this.subscribed.filter((one) => one.filter !== filter);
    this.changed();
  }

  clear(): void {
    this.log.clear();
    this.changed();
  }

  private take(event: ExchangeEvent): void {
    switch (event.kind) {
      case "connected":
        this.now = "connected";
        this.met = true;
        this.name = event.clientId;
        this.present = event.isSessionPresent;
        if (!event.isSessionPresent) this.subscribed = [];
        break;
      case "message":
        this.log.add({ ...event.message, isOut: false, timeMs: Date.now(), answer: null });
        break;
      case "published":
        this.log.answered(event.number, event);
        break;
      case "subscribed":
        this.subscribed = this.subscribed.map((one) =>
          one.filter === event.filter ? { ...one, answer: event } : one,
        );
        break;
      case "unsubscribed":
        if (event.code < 0x80) this.subscribed = this.without(event.filter);
        break;
      case "ended":
        return this.ended(event.why);
    }
    this.changed();
  }

  private without(filter: string): Subscription[] {
    return this.subscribed.filter((one) => one.filter !== filter);
  }

  private ended(why: Ending): void {
    this.now = "ended";
    this.why = why;
    if (this.timer !== null) clearInterval(this.timer);
    const { socket } = this;
    [this.socket, this.exchange, this.timer] = [null, null, null];
    if (socket !== null) {
      socket.onopen = socket.onmessage = socket.onclose = null;
      socket.close();
    }
    this.changed();
  }

  private changed(): void {
    this.drawing ??= setTimeout(() => {
      this.drawing = null;
      for (const listener of [...this.listeners]) listener();
    }, DRAWN_MS);
  }
}
