// The MQTT of the page with connections: bytes, the exchange with a server, what is kept.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ByteReader, ByteWriter, Malformed, utf8 } from "../src/console/mqtt/bytes";
import { filterFault, payloadOf, shownPayload, socketAddress, topicFault, isReadable } from "../src/console/mqtt/checks";
import { Connection } from "../src/console/mqtt/connection";
import type { Socket } from "../src/console/mqtt/connection";
import { Exchange } from "../src/console/mqtt/exchange";
import type { ExchangeEvent } from "../src/console/mqtt/exchange";
import { MESSAGES_MAX, MessageLog, PAYLOAD_BYTES_MAX } from "../src/console/mqtt/message-log";
import * as packets from "../src/console/mqtt/packets";
import type { ConnectPacket } from "../src/console/mqtt/packets";
import { PacketStream } from "../src/console/mqtt/packet-stream";
import { reasonOf, refusalOf } from "../src/console/i18n/mqtt-reasons";
import { freshClientId, offersOf } from "../src/console/broker/websocket/address";
import { isElsewhere } from "../src/console/router";

const CONNECT: ConnectPacket = {
  version: 5, clientId: "a", user: "u", password: "p", isCleanStart: true, keepAliveSeconds: 60,
  sessionExpirySeconds: 0, receiveMaximum: 2, packetBytesMax: 1000,
};

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}

function bytes(text: string): Uint8Array {
  return Uint8Array.from(Buffer.from(text.replace(/ /g, ""), "hex"));
}

function decoded(version: 4 | 5, text: string): packets.ServerPacket {
  const [packet] = new PacketStream(1000).take(bytes(text));
  return packets.decoded(version, packet!.first, packet!.body);
}

test("numbers of one to four bytes come back, and longer ones are none", () => {
  for (const value of [0, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152, 268_435_455])
    assert.equal(new ByteReader(new ByteWriter().varint(value).bytes()).varint(), value);
  assert.throws(() => new ByteReader(bytes("ffffffff01")).varint(), Malformed);
  assert.equal(new ByteReader(new ByteWriter().u32(4_294_967_295).bytes()).u32(), 4_294_967_295);
});

test("a CONNECT is written as the specification has it", () => {
  // Receive maximum 2, packets of 1000 bytes at most; user and password.
  assert.equal(
    hex(packets.connect(CONNECT)),
    "101c" + "00044d515454" + "05" + "c2" + "003c" + "08" + "210002" + "27000003e8" + "000161" + "000175" + "000170",
  );
  const old = { ...CONNECT, version: 4 as const, user: null, password: null, isCleanStart: false };
  assert.equal(hex(packets.connect(old)), "100d" + "00044d515454" + "04" + "00" + "003c" + "000161");
  const kept = packets.connect({ ...CONNECT, sessionExpirySeconds: 60 });
  assert.ok(hex(kept).includes("110000003c"));
});

test("what a client sends is written as the specification has it", () => {
  const message = { topic: "a/b", payload: utf8("x"), qos: 1 as const, retain: true, dup: false, id: 7 };
  assert.equal(hex(packets.publish(5, message)), "3309" + "0003612f62" + "0007" + "00" + "78");
  assert.equal(hex(packets.publish(4, { ...message, qos: 0 })), "3106" + "0003612f62" + "78");
  assert.equal(hex(packets.subscribe(5, 1, "#", 2)), "8207" + "0001" + "00" + "000123" + "02");
  assert.equal(hex(packets.unsubscribe(4, 1, "#")), "a205" + "0001" + "000123");
  assert.equal(hex(packets.ack("pubrel", 9)), "62020009");
  assert.equal(hex(packets.pingreq()) + hex(packets.disconnect()), "c000e000");
});

test("what a server sends is read, in both versions", () => {
  const connack = decoded(5, "20 08 01 00 05 24 01 13 000a");
  assert.ok(connack.kind === "connack" && connack.isSessionPresent && connack.code === 0);
  assert.deepEqual([connack.properties.number(0x24), connack.properties.number(0x13)], [1, 10]);
  const refused = decoded(4, "20 02 00 05");
  assert.ok(refused.kind === "connack" && refused.code === 5);
  // A user property, twice, and a subscription identifier.
  const message = decoded(5, "33 18 0001 61 0007 10 26 0001 6b 0001 76 26 0001 6b 0001 76 0b 05 7879");
  assert.ok(message.kind === "publish");
  assert.deepEqual(
    { ...message, payload: Buffer.from(message.payload).toString() },
    { kind: "publish", topic: "a", payload: "xy", qos: 1, retain: true, dup: false, id: 7 },
  );
  assert.deepEqual(decoded(4, "40 02 0007"), { kind: "puback", id: 7, code: 0, reason: null });
  assert.deepEqual(decoded(5, "40 07 0007 97 03 1f 0000"), { kind: "puback", id: 7, code: 0x97, reason: "" });
  assert.deepEqual(decoded(4, "b0 02 0007"), { kind: "unsuback", id: 7, codes: [], reason: null });
  const left = decoded(5, "e0 00");
  assert.ok(left.kind === "disconnect" && left.code === 0);
});

test("what is no packet of a server is refused", () => {
  const wrong = [
    [5, "10 00"], // CONNECT.
    [5, "30 02 0000"], // No topic.
    [5, "36 05 0001 61 0001"], // QoS 3.
    [5, "32 06 0001 61 0000 00"], // Identifier 0.
    [5, "30 04 0001 23 00"], // A wildcard in a topic.
    [5, "30 07 0001 61 03 23 0001"], // A topic alias.
    [5, "30 04 0001 ff 00"], // Not UTF-8.
    [4, "e0 00"], // DISCONNECT in 3.1.1.
    [5, "41 02 0001"], // Flags.
    [5, "20 03 02 00 00"], // Flags of a CONNACK.
    [5, "20 06 00 00 02 24 01 00"], // Longer than its properties.
    [5, "20 07 00 00 04 24 01 24 01"], // A property twice.
    [5, "20 05 00 00 02 99 01"], // No such property.
    [5, "20 03 00 00 05"], // Properties that are not there.
    [5, "d0 01 00"], // Too long.
    [4, "20 01 00"], // Too short.
  ] as const;
  for (const [version, text] of wrong) assert.throws(() => decoded(version, text), Malformed, text);
});

test("packets are found in whatever pieces they come, and too large ones are refused at their head", () => {
  const all = bytes("d000 3005 0003612f62 d000");
  for (let size = 1; size <= all.length; size += 1) {
    const stream = new PacketStream(100);
    const found = [];
    for (let at = 0; at < all.length; at += size)
      found.push(...stream.take(all.subarray(at, at + size)));
    assert.deepEqual(found.map(({ first }) => first), [0xd0, 0x30, 0xd0], `pieces of ${size}`);
  }
  assert.throws(() => new PacketStream(100).take(bytes("30 64")), Malformed);
  assert.throws(() => new PacketStream(100).take(bytes("30 ffffffff")), Malformed);
});

interface Played {
  exchange: Exchange;
  sent: string[];
  events: ExchangeEvent[];
  clock: { ms: number };
  take: (text: string) => void;
}

// An exchange that has begun.
function played(wanted: Partial<ConnectPacket> = {}): Played {
  const sent: string[] = [];
  const events: ExchangeEvent[] = [];
  const clock = { ms: 0 };
  const exchange = new Exchange(
    { ...CONNECT, ...wanted },
    (packet) => sent.push(hex(packet)),
    (event) => events.push(event),
    () => clock.ms,
  );
  exchange.begin();
  sent.length = 0;
  return { exchange, sent, events, clock, take: (text) => exchange.take(bytes(text)) };
}

function admitted(wanted: Partial<ConnectPacket> = {}, connack = "2003 00 00 00"): Played {
  const all = played(wanted);
  all.take(connack);
  assert.deepEqual(all.events.map(({ kind }) => kind), ["connected"]);
  all.events.length = 0;
  return all;
}

test("a connection is made with the name that the server chooses, or refused with its reason", () => {
  const one = played({ clientId: "" });
  one.take("200a 01 00 07 12 0004 61757430");
  assert.deepEqual(one.events, [{ kind: "connected", clientId: "aut0", isSessionPresent: true }]);
  const other = played();
  other.take("200b 00 9c 08 1c 0002 6232 1f 0000");
  assert.deepEqual(other.events, [
    { kind: "ended", why: { by: "refusal", code: 0x9c, reason: "", reference: "b2" } },
  ]);
  assert.equal(refusalOf(5, 4, "en"), "not authorized (5)");
  assert.equal(reasonOf(0x87, "en"), "not authorized (0x87)");
  assert.equal(reasonOf(0xee, "zh"), "0xEE");
});

test("messages of each QoS are acknowledged, and one of QoS 2 is told once", () => {
  const { exchange, sent, events, take } = admitted();
  take("3005 0001 61 00 78");
  take("3207 0001 61 0005 00 78");
  take("3407 0001 61 0006 00 78");
  take("3c07 0001 61 0006 00 78");
  assert.equal(events.length, 3);
  assert.deepEqual(sent, ["40020005", "50020006", "50020006"]);
  take("6202 0006");
  take("3407 0001 61 0006 00 79");
  assert.equal(events.length, 4);
  assert.equal(sent.at(-2), "70020006");
  const numbered = { topic: "a", payload: utf8("x"), retain: false };
  assert.equal(exchange.publish({ ...numbered, qos: 2 }, 41), null);
  take("5002 0001");
  assert.equal(sent.at(-1), "62020001");
  take("7002 0001");
  assert.equal(exchange.publish({ ...numbered, qos: 1 }, 42), null);
  take("4003 0002 10");
  assert.deepEqual(events.slice(4), [
    { kind: "published", number: 41, code: 0, reason: null },
    { kind: "published", number: 42, code: 0x10, reason: null },
  ]);
});

test("subscriptions are answered by their filter", () => {
  const { exchange, events, take } = admitted();
  assert.equal(exchange.subscribe("a/#", 1), null);
  assert.equal(exchange.subscribe("b", 1), null);
  take("900b 0002 07 1f 0004 6e6f7065 87");
  take("9004 0001 00 01");
  assert.equal(exchange.unsubscribe("a/#"), null);
  take("b004 0003 00 11");
  assert.deepEqual(events, [
    { kind: "subscribed", filter: "b", code: 0x87, reason: "nope" },
    { kind: "subscribed", filter: "a/#", code: 1, reason: null },
    { kind: "unsubscribed", filter: "a/#", code: 0x11, reason: null },
  ]);
});

test("what a server may not do ends the connection", () => {
  const wrong: [string, string[]][] = [
    ["a second CONNACK", ["2003 00 00 00"]],
    ["an acknowledgement of nothing", ["4002 0009"]],
    ["a SUBACK of nothing", ["9004 0009 00 00"]],
    ["more than the receive maximum", ["3407 0001 61 0001 00 78", "3407 0001 61 0002 00 78", "3407 0001 61 0003 00 78"]],
    ["a packet above the maximum", ["30 ffff03"]],
  ];
  for (const [what, pieces] of wrong) {
    const { events, take } = admitted();
    for (const piece of pieces) take(piece);
    const last = events.at(-1);
    assert.ok(last?.kind === "ended" && last.why.by === "fault", what);
  }
  const early = played();
  early.take("d000");
  assert.equal(early.events.at(-1)?.kind, "ended");
});

test("a silent server is asked, and then given up", () => {
  const { exchange, sent, events, clock, take } = admitted();
  clock.ms = 29_000;
  exchange.tick();
  assert.deepEqual(sent, []);
  clock.ms = 30_000;
  exchange.tick();
  exchange.tick();
  assert.deepEqual(sent, ["c000"]);
  take("d000");
  clock.ms = 60_000;
  exchange.tick();
  clock.ms = 70_001;
  exchange.tick();
  assert.deepEqual(events, [{ kind: "ended", why: { by: "silence" } }]);
  const unanswered = played();
  unanswered.clock.ms = 10_001;
  unanswered.exchange.tick();
  assert.deepEqual(unanswered.events, [{ kind: "ended", why: { by: "silence" } }]);
});

test("the limits that the server names are kept", () => {
  // Receive maximum 1, QoS 1 at most, nothing retained, packets of 20 bytes.
  const { exchange } = admitted({}, "200f 00 00 0c 21 0001 24 01 25 00 27 00000014");
  const message = { topic: "a", payload: utf8("x"), qos: 1 as const, retain: false };
  assert.equal(exchange.publish({ ...message, qos: 2 }, 1), "qos");
  assert.equal(exchange.publish({ ...message, retain: true }, 1), "retain");
  assert.equal(exchange.publish({ ...message, payload: new Uint8Array(20) }, 1), "too_large");
  assert.equal(exchange.subscribe("a".repeat(30), 0), "too_large");
  assert.equal(exchange.publish(message, 1), null);
  assert.equal(exchange.publish(message, 2), "unanswered");
  assert.equal(exchange.publish({ ...message, qos: 0 }, 2), null);
  exchange.leave();
  assert.equal(exchange.publish(message, 3), "not_connected");
});

test("topics, filters, payloads and addresses are judged before they are sent", () => {
  for (const good of ["a", "/", "$SYS/x", "a b/ü"]) assert.equal(topicFault(good), null, good);
  for (const bad of ["", "a/+", "#", "a\0"]) assert.notEqual(topicFault(bad), null, bad);
  for (const good of ["#", "+", "a/+/b/#", "$share/g/a/#", "/"]) assert.equal(filterFault(good), null, good);
  for (const bad of ["", "a#", "#/a", "a+/b", "$share/g", "$share//a", "$share/g+/a", "$share/g/a#"])
    assert.notEqual(filterFault(bad), null, bad);
  assert.deepEqual(payloadOf("0A ff", "hex"), Uint8Array.of(10, 255));
  for (const bad of ["f", "0g", "zz"]) assert.equal(payloadOf(bad, "hex"), "hex");
  assert.equal(payloadOf("{", "json"), "json");
  assert.deepEqual(payloadOf('{"a": 1}', "json"), utf8('{"a": 1}'));
  assert.equal(socketAddress(" ws://h:8083 "), "ws://h:8083/mqtt");
  assert.equal(socketAddress("wss://h/x?y"), "wss://h/x?y");
  for (const bad of ["http://h", "h:1", "ws://u:p@h", "ws://", "ws://h/#x", "javascript:ws://h"])
    assert.equal(socketAddress(bad), null, bad);
  assert.deepEqual(
    ["ws://127.0.0.1:1/", "ws://localhost/", "wss://h/", "ws://h/"].map(isReadable),
    [false, false, false, true],
  );
});

test("a payload is shown as what it is", () => {
  assert.deepEqual(shownPayload(utf8("21.5 °C"), "text", false), { format: "text", text: "21.5 °C" });
  assert.deepEqual(shownPayload(utf8('{"a":1}'), "json", false), { format: "json", text: '{\n  "a": 1\n}' });
  assert.equal(shownPayload(utf8("{"), "json", false).format, "text");
  assert.deepEqual(shownPayload(Uint8Array.of(0, 255), "text", false), { format: "hex", text: "00 ff" });
  // Cut within a character.
  assert.deepEqual(shownPayload(utf8("a°").slice(0, 2), "text", true), { format: "text", text: "a" });
});

test("the newest messages are kept with the beginnings of their payloads, and the others counted", () => {
  const log = new MessageLog();
  const row = { timeMs: 0, isOut: false, topic: "a", qos: 0 as const, retain: false, dup: false, answer: null };
  for (let index = 0; index < MESSAGES_MAX + 3; index += 1)
    log.add({ ...row, payload: new Uint8Array(PAYLOAD_BYTES_MAX + 1) });
  const all = MESSAGES_MAX + 3;
  assert.deepEqual([log.rows().length, log.dropped, log.received], [MESSAGES_MAX, 3, all]);
  const { number, payload, payloadBytes } = log.rows()[0]!;
  assert.deepEqual([number, payload.length], [all, PAYLOAD_BYTES_MAX]);
  assert.equal(payloadBytes, PAYLOAD_BYTES_MAX + 1);
  log.clear();
  assert.deepEqual([log.rows().length, log.dropped], [0, 0]);
});

// A socket that a test plays the server of.
class Played5 implements Socket {
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: (() => void) | null = null;
  binaryType = "blob" as const as BinaryType;
  bufferedAmount = 0;
  isClosed = false;
  sent: string[] = [];
  send(data: unknown): void {
    this.sent.push(hex(data as Uint8Array));
  }
  close(): void {
    this.isClosed = true;
  }
  say(text: string): void {
    this.onmessage?.({ data: bytes(text).buffer });
  }
}

const WANTED = {
  address: "ws://h/mqtt", version: 5 as const, clientId: "a", user: null, password: null,
  isCleanStart: false, sessionExpirySeconds: 60,
};

test("a connection keeps its subscriptions as long as the broker keeps the session", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  const sockets: Played5[] = [];
  const connection = new Connection(1, WANTED, () => {
    sockets.push(new Played5());
    return sockets.at(-1)!;
  });
  const open = (connack: string) => {
    connection.open();
    sockets.at(-1)!.onopen?.();
    sockets.at(-1)!.say(connack);
    return sockets.at(-1)!;
  };
  const first = open("2003 00 00 00");
  assert.equal(connection.state, "connected");
  assert.equal(connection.subscribe("a", 1), null);
  first.say("9004 0001 00 01");
  assert.equal(connection.subscriptions[0]!.answer!.code, 1);
  assert.equal(connection.publish({ topic: "a", payload: utf8("x"), qos: 1, retain: false }), null);
  first.say("4003 0002 87");
  assert.equal(connection.log.rows()[0]!.answer!.code, 0x87);
  first.bufferedAmount = 5 << 20;
  assert.equal(connection.publish({ topic: "a", payload: utf8("x"), qos: 0, retain: false }), "unsent");
  first.onclose?.();
  assert.deepEqual(connection.ending, { by: "network", wasOpen: true });
  assert.ok(first.isClosed);
  open("2003 01 00 00");
  assert.deepEqual([connection.subscriptions.length, connection.isSessionPresent], [1, true]);
  connection.close();
  assert.equal(sockets.at(-1)!.sent.at(-1), "e000");
  assert.equal(connection.subscribe("b", 0), "not_connected");
  open("2003 00 00 00");
  assert.equal(connection.subscriptions.length, 0);
  sockets.at(-1)!.onmessage?.({ data: "text" });
  assert.equal(connection.ending!.by, "fault");
});

test("a socket that the browser does not open is told as one that is not reached", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const connection = new Connection(1, WANTED, () => {
    throw new Error("SecurityError");
  });
  connection.open();
  assert.deepEqual(connection.ending, { by: "network", wasOpen: false });
});

test("the listeners of the broker are offered as the browser reaches them", () => {
  const listener = { connections_max: null, password_file: null, allow_anonymous: true };
  const here = { host: "10.0.0.9", origin: "http://10.0.0.9:9740" };
  const listeners = [
    { ...listener, address: "0.0.0.0:1883", transport: "tcp" as const },
    { ...listener, address: "0.0.0.0:8083", transport: "ws" as const, path: "/x" },
    { ...listener, address: "127.0.0.1:8084", transport: "wss" as const, origins: ["https://app.example"] },
    { ...listener, address: "[::]:8085", transport: "ws" as const, origins: [here.origin] },
  ];
  assert.deepEqual(offersOf(listeners, "/run/tacho/1883.sock", here), [
    { address: "ws://10.0.0.9:8083/x", isClosedToPage: false },
    { address: "wss://127.0.0.1:8084/mqtt", isClosedToPage: true },
    { address: "ws://10.0.0.9:8085/mqtt", isClosedToPage: false },
  ]);
  const remote = offersOf(listeners, "https://[2001:db8::1]:9884", here);
  assert.equal(remote[0]!.address, "ws://[2001:db8::1]:8083/x");
  assert.match(freshClientId(), /^web-[0-9a-f]{8}$/);
});

test("the page with connections is a document of its own", () => {
  assert.ok(isElsewhere("/broker", "/broker/websocket"));
  assert.ok(isElsewhere("/broker/websocket", "/"));
  assert.ok(!isElsewhere("/broker", "/runs"));
  assert.ok(!isElsewhere("/broker/websocket", "/broker/websocket"));
});
