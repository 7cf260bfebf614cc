// A client's side of a connection: what it sends, what it makes of what it receives. Bytes and time
// come from outside.

import { Malformed } from "./bytes";
import * as packets from "./packets";
import type { ConnectPacket, PublishPacket, Qos, ServerPacket } from "./packets";
import { PacketStream } from "./packet-stream";
import { PROPERTY } from "./properties";

// How long the server may take to answer a CONNECT or a PINGREQ.
const ANSWER_MS = 10_000;
// Messages of QoS 1 and 2, SUBSCRIBE and UNSUBSCRIBE without an answer.
const UNANSWERED_MAX = 100;
const CODES_FAILED = 0x80;

// Why a connection has ended, or was not made.
export type Ending =
  | { by: "user" }
  // The connection was not made, or it broke.
  | { by: "network"; wasOpen: boolean }
  | { by: "silence" }
  // The server sent what is not MQTT.
  | { by: "fault"; text: string }
  | { by: "refusal" | "server"; code: number; reason: string | null; reference: string | null };

export interface Answer {
  code: number;
  reason: string | null;
}

export type ExchangeEvent =
  | { kind: "connected"; clientId: string; isSessionPresent: boolean }
  | { kind: "message"; message: PublishPacket }
  | ({ kind: "published"; number: number } & Answer)
  | ({ kind: "subscribed" | "unsubscribed"; filter: string } & Answer)
  | { kind: "ended"; why: Ending };

// Why something cannot be sent now.
export type Hindrance = "not_connected" | "unanswered" | "too_large" | "qos" | "retain";

type Awaited =
  | { kind: "publish"; number: number; qos: Qos; isReceived: boolean }
  | { kind: "subscribe" | "unsubscribe"; filter: string };

export class Exchange {
  private readonly stream: PacketStream;
  private state: "new" | "asked" | "connected" | "ended" = "new";
  private readonly awaited = new Map<number, Awaited>();
  // Received with QoS 2, and not released yet.
  private readonly unreleased = new Set<number>();
  private nextId = 1;
  private sentAt = 0;
  private askedAt: number | null = null;
  private keepAliveMs: number;
  private receiveMaximum = 65_535;
  private packetBytesMax = Infinity;
  private qosMaximum = 2;
  private canRetain = true;

  constructor(
    private readonly wanted: ConnectPacket,
    private readonly send: (bytes: Uint8Array) => void,
    private readonly tell: (event: ExchangeEvent) => void,
    private readonly now: () => number,
  ) {
    this.stream = new PacketStream(wanted.packetBytesMax);
    this.keepAliveMs = wanted.keepAliveSeconds * 1000;
  }

  // The connection is open.
  begin(): void {
    this.state = "asked";
    this.askedAt = this.now();
    this.put(packets.connect(this.wanted));
  }

  take(bytes: Uint8Array): void {
    if (this.state === "ended") return;
    try {
      for (const { first, body } of this.stream.take(bytes)) {
        this.handle(packets.decoded(this.wanted.version, first, body));
        if (this.hasEnded()) return;
      }
    } catch (error) {
      if (!(error instanceof Malformed)) throw error;
      this.end({ by: "fault", text: error.message });
    }
  }

  // Called every few seconds: asks whether the server is there, and no longer waits for one that is
  // not.
  tick(): void {
    if (this.state === "ended" || this.state === "new") return;
    const now = this.now();
    if (this.askedAt !== null && now - this.askedAt > ANSWER_MS) return this.end({ by: "silence" });
    const isQuiet = this.keepAliveMs > 0 && now - this.sentAt >= this.keepAliveMs / 2;
    if (this.state !== "connected" || this.askedAt !== null || !isQuiet) return;
    this.askedAt = now;
    this.put(packets.pingreq());
  }

  // Sends a message; `number` is told with its acknowledgement.
  publish(message: Omit<PublishPacket, "id" | "dup">, number: number): Hindrance | null {
    if (this.state !== "connected") return "not_connected";
    if (message.qos > this.qosMaximum) return "qos";
    if (message.retain && !this.canRetain) return "retain";
    const id = message.qos === 0 ? 0 : this.freeId();
    if (id === null || (id > 0 && this.published() >= this.receiveMaximum)) return "unanswered";
    const bytes = packets.publish(this.wanted.version, { ...message, dup: false, id });
    if (bytes.length > this.packetBytesMax) return "too_large";
    if (id > 0)
      this.awaited.set(id, { kind: "publish", number, qos: message.qos, isReceived: false });
    this.put(bytes);
    return null;
  }

  subscribe(filter: string, qos: Qos): Hindrance | null {
    return this.ask("subscribe", filter, (id) =>
      packets.subscribe(this.wanted.version, id, filter, qos),
    );
  }

  unsubscribe(filter: string): Hindrance | null {
    return this.ask("unsubscribe", filter, (id) =>
      packets.unsubscribe(this.wanted.version, id, filter),
    );
  }

  // Leaves; a will is not published.
  leave(): void {
    if (this.state === "connected") this.put(packets.disconnect());
    this.end({ by: "user" });
  }

  // The connection is gone.
  lost(): void {
    this.end({ by: "network", wasOpen: this.state === "connected" });
  }

  private ask(
    kind: "subscribe" | "unsubscribe",
    filter: string,
    packet: (id: number) => Uint8Array,
  ): Hindrance | null {
    if (this.state !== "connected") return "not_connected";
    const id = this.freeId();
    if (id === null) return "unanswered";
    const bytes = packet(id);
    if (bytes.length > this.packetBytesMax) return "too_large";
    this.awaited.set(id, { kind, filter });
    this.put(bytes);
    return null;
  }

  private handle(packet: ServerPacket): void {
    if ((packet.kind === "connack") !== (this.state === "asked"))
      throw new Malformed(`the server sends ${packet.kind.toUpperCase()} at the wrong time`);
    switch (packet.kind) {
      case "connack":
        return this.admitted(packet);
      case "publish":
        return this.received(packet);
      case "pubrel":
        this.unreleased.delete(packet.id);
        return this.put(packets.ack("pubcomp", packet.id));
      case "puback":
      case "pubrec":
      case "pubcomp":
        return this.acknowledged(packet.kind, packet.id, packet);
      case "suback":
      case "unsuback":
        return this.answered(packet.kind, packet);
      case "pingresp":
        this.askedAt = null;
        return;
      case "disconnect": {
        const { code, properties } = packet;
        const reason = properties.text(PROPERTY.reason) ?? null;
        const reference = properties.text(PROPERTY.serverReference) ?? null;
        return this.end({ by: "server", code, reason, reference });
      }
    }
  }

  private admitted(packet: ServerPacket & { kind: "connack" }): void {
    const { code, properties, isSessionPresent } = packet;
    this.askedAt = null;
    if (code !== 0) {
      const reason = properties.text(PROPERTY.reason) ?? null;
      const reference = properties.text(PROPERTY.serverReference) ?? null;
      return this.end({ by: "refusal", code, reason, reference });
    }
    this.state = "connected";
    const keepAlive = properties.number(PROPERTY.serverKeepAlive);
    if (keepAlive !== undefined) this.keepAliveMs = keepAlive * 1000;
    this.receiveMaximum = properties.number(PROPERTY.receiveMaximum) ?? 65_535;
    this.packetBytesMax = properties.number(PROPERTY.packetSizeMaximum) ?? Infinity;
    this.qosMaximum = properties.number(PROPERTY.qosMaximum) ?? 2;
    this.canRetain = properties.number(PROPERTY.retainAvailable) !== 0;
    const clientId = properties.text(PROPERTY.assignedClientId) ?? this.wanted.clientId;
    this.tell({ kind: "connected", clientId, isSessionPresent });
  }

  private received(message: PublishPacket): void {
    const { qos, id } = message;
    const isNew = qos < 2 || !this.unreleased.has(id);
    if (isNew && qos === 2) {
      if (this.unreleased.size >= this.wanted.receiveMaximum && this.wanted.version === 5)
        throw new Malformed("the server sends more messages than it may before they are released");
      this.unreleased.add(id);
    }
    if (isNew) this.tell({ kind: "message", message });
    if (qos > 0) this.put(packets.ack(qos === 1 ? "puback" : "pubrec", id));
  }

  private acknowledged(kind: "puback" | "pubrec" | "pubcomp", id: number, answer: Answer): void {
    const known = this.awaited.get(id);
    const isDue =
      known?.kind === "publish" &&
      (kind === "puback") === (known.qos === 1) &&
      (kind !== "pubcomp" || known.isReceived);
    if (known?.kind !== "publish" || !isDue)
      throw new Malformed(`the server acknowledges packet ${id}, which it did not get`);
    const { code, reason } = answer;
    if (kind === "pubrec" && code < CODES_FAILED) {
      known.isReceived = true;
      return this.put(packets.ack("pubrel", id));
    }
    this.awaited.delete(id);
    this.tell({ kind: "published", number: known.number, code, reason });
  }

  private answered(
    kind: "suback" | "unsuback",
    { id, codes, reason }: { id: number; codes: number[]; reason: string | null },
  ): void {
    const known = this.awaited.get(id);
    const wanted = kind === "suback" ? "subscribe" : "unsubscribe";
    // MQTT 3.1.1 has no code in UNSUBACK.
    const code = codes[0] ?? (kind === "unsuback" && this.wanted.version === 4 ? 0 : undefined);
    if (known?.kind !== wanted || code === undefined || codes.length > 1)
      throw new Malformed(`the server answers packet ${id}, which it did not get`);
    this.awaited.delete(id);
    const done = kind === "suback" ? "subscribed" : "unsubscribed";
    this.tell({ kind: done, filter: known.filter, code, reason });
  }

  private published(): number {
    return [...this.awaited.values()].filter(({ kind }) => kind === "publish").length;
  }

  private freeId(): number | null {
    if (this.awaited.size >= UNANSWERED_MAX) return null;
    while (this.awaited.has(this.nextId)) this.nextId = (this.nextId % 65_535) + 1;
    const id = this.nextId;
    this.nextId = (id % 65_535) + 1;
    return id;
  }

  private put(bytes: Uint8Array): void {
    this.sentAt = this.now();
    this.send(bytes);
  }

  // Events may have ended it.
  private hasEnded(): boolean {
    return this.state === "ended";
  }

  private end(why: Ending): void {
    if (this.state === "ended") return;
    this.state = "ended";
    this.tell({ kind: "ended", why });
  }
}
