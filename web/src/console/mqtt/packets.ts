// Packets of MQTT 5.0 and 3.1.1 as a client sends and receives them.

import { ByteReader, ByteWriter, Malformed, VARINT_MAX } from "./bytes";
import { PROPERTY, Properties, written } from "./properties";

export type Version = 5 | 4;
export type Qos = 0 | 1 | 2;

// What a client sends to open a session.
export interface ConnectPacket {
  version: Version;
  clientId: string;
  user: string | null;
  password: string | null;
  isCleanStart: boolean;
  keepAliveSeconds: number;
  // How long the session outlives its connection, in seconds; for MQTT 5.0.
  sessionExpirySeconds: number;
  receiveMaximum: number;
  packetBytesMax: number;
}

export interface PublishPacket {
  topic: string;
  payload: Uint8Array;
  qos: Qos;
  retain: boolean;
  dup: boolean;
  // 0 with QoS 0.
  id: number;
}

export type AckKind = "puback" | "pubrec" | "pubrel" | "pubcomp";

// What a server sends.
export type ServerPacket =
  | { kind: "connack"; code: number; isSessionPresent: boolean; properties: Properties }
  | ({ kind: "publish" } & PublishPacket)
  | { kind: AckKind; id: number; code: number; reason: string | null }
  | { kind: "suback" | "unsuback"; id: number; codes: number[]; reason: string | null }
  | { kind: "pingresp" }
  | { kind: "disconnect"; code: number; properties: Properties };

const ACKS: Record<AckKind, number> = { puback: 0x40, pubrec: 0x50, pubrel: 0x62, pubcomp: 0x70 };
const ACK_KINDS: Record<number, AckKind> = { 4: "puback", 5: "pubrec", 6: "pubrel", 7: "pubcomp" };

function framed(first: number, body: Uint8Array): Uint8Array {
  if (body.length > VARINT_MAX) throw new RangeError("the packet is too large for MQTT");
  const head = new ByteWriter().u8(first).varint(body.length).bytes();
  const packet = new Uint8Array(head.length + body.length);
  packet.set(head);
  packet.set(body, head.length);
  return packet;
}

export function connect(packet: ConnectPacket): Uint8Array {
  const { version, user, password } = packet;
  const flags =
    (packet.isCleanStart ? 0x02 : 0) | (user === null ? 0 : 0x80) | (password === null ? 0 : 0x40);
  const body = new ByteWriter().text("MQTT").u8(version).u8(flags).u16(packet.keepAliveSeconds);
  if (version === 5) {
    const { sessionExpirySeconds: expiry, receiveMaximum, packetBytesMax } = packet;
    body.raw(
      written([
        ...(expiry > 0 ? ([[PROPERTY.sessionExpiry, expiry]] as [number, number][]) : []),
        [PROPERTY.receiveMaximum, receiveMaximum],
        [PROPERTY.packetSizeMaximum, packetBytesMax],
      ]),
    );
  }
  body.text(packet.clientId);
  if (user !== null) body.text(user);
  if (password !== null) body.text(password);
  return framed(0x10, body.bytes());
}

export function publish(version: Version, packet: PublishPacket): Uint8Array {
  const { topic, payload, qos, retain, dup, id } = packet;
  const head = new ByteWriter().text(topic);
  if (qos > 0) head.u16(id);
  if (version === 5) head.u8(0);
  const begin = head.bytes();
  const body = new Uint8Array(begin.length + payload.length);
  body.set(begin);
  body.set(payload, begin.length);
  return framed(0x30 | (dup ? 8 : 0) | (qos << 1) | (retain ? 1 : 0), body);
}

export function ack(kind: AckKind, id: number): Uint8Array {
  return framed(ACKS[kind], new ByteWriter().u16(id).bytes());
}

export function subscribe(version: Version, id: number, filter: string, qos: Qos): Uint8Array {
  const body = new ByteWriter().u16(id);
  if (version === 5) body.u8(0);
  return framed(0x82, body.text(filter).u8(qos).bytes());
}

export function unsubscribe(version: Version, id: number, filter: string): Uint8Array {
  const body = new ByteWriter().u16(id);
  if (version === 5) body.u8(0);
  return framed(0xa2, body.text(filter).bytes());
}

export function pingreq(): Uint8Array {
  return framed(0xc0, new Uint8Array());
}

export function disconnect(): Uint8Array {
  return framed(0xe0, new Uint8Array());
}

// A packet from its first byte and what follows its length.
export function decoded(version: Version, first: number, body: Uint8Array): ServerPacket {
  const from = new ByteReader(body);
  const packet = decodedBody(version, first, from);
  if (from.left > 0) throw new Malformed("the packet is longer than what it holds");
  return packet;
}

function decodedBody(version: Version, first: number, from: ByteReader): ServerPacket {
  const [type, flags] = [first >> 4, first & 0x0f];
  if (type === 3) return decodedPublish(version, flags, from);
  const wanted = type === 6 ? 2 : 0;
  if (flags !== wanted) throw new Malformed(`the packet of type ${type} has wrong flags`);
  const kind = ACK_KINDS[type];
  if (kind !== undefined) {
    const id = packetId(from);
    return { kind, id, ...reasonAndCode(version, from) };
  }
  switch (type) {
    case 2: {
      const present = from.u8();
      if (present > 1) throw new Malformed("the CONNACK has wrong flags");
      const code = from.u8();
      const properties = version === 5 ? Properties.read(from) : new Properties();
      return { kind: "connack", code, isSessionPresent: present === 1, properties };
    }
    case 9:
    case 11: {
      const id = packetId(from);
      const properties = version === 5 ? Properties.read(from) : new Properties();
      const reason = properties.text(PROPERTY.reason) ?? null;
      return { kind: type === 9 ? "suback" : "unsuback", id, codes: [...from.rest()], reason };
    }
    case 13:
      return { kind: "pingresp" };
    case 14: {
      if (version === 4) throw new Malformed("a server of MQTT 3.1.1 sends no DISCONNECT");
      const code = from.left > 0 ? from.u8() : 0;
      const properties = from.left > 0 ? Properties.read(from) : new Properties();
      return { kind: "disconnect", code, properties };
    }
    default:
      throw new Malformed(`a server sends no packet of type ${type}`);
  }
}

function decodedPublish(version: Version, flags: number, from: ByteReader): ServerPacket {
  const qos = (flags >> 1) & 3;
  if (qos === 3) throw new Malformed("there is no QoS 3");
  const topic = from.text();
  const id = qos > 0 ? packetId(from) : 0;
  // None was granted to the server, so that every topic has its name.
  if (version === 5 && Properties.read(from).number(PROPERTY.topicAlias) !== undefined)
    throw new Malformed("the server uses a topic alias that it was not granted");
  if (topic === "" || /[#+\0]/.test(topic)) throw new Malformed("the PUBLISH has no topic name");
  const payload = from.rest();
  const [retain, dup] = [(flags & 1) === 1, (flags & 8) === 8];
  return { kind: "publish", topic, payload, qos: qos as Qos, retain, dup, id };
}

function packetId(from: ByteReader): number {
  const id = from.u16();
  if (id === 0) throw new Malformed("there is no packet identifier 0");
  return id;
}

// Of an acknowledgement, which leaves them out when nothing is wrong.
function reasonAndCode(version: Version, from: ByteReader): { code: number; reason: string | null } {
  if (version === 4 || from.left === 0) return { code: 0, reason: null };
  const code = from.u8();
  const properties = from.left > 0 ? Properties.read(from) : new Properties();
  return { code, reason: properties.text(PROPERTY.reason) ?? null };
}
