// A broker at the other end of the WebSockets that a page opens: it takes every client but
// `banned`, and sends what is published to all whose filters match word for word or by `#`.

import type { Page, WebSocketRoute } from "playwright-core";

interface Peer {
  socket: WebSocketRoute;
  version: number;
  // With a `/#` at the end, or exact.
  filters: Set<string>;
}

function text(text: string): Buffer {
  const bytes = Buffer.from(text);
  return Buffer.concat([Buffer.of(bytes.length >> 8, bytes.length & 0xff), bytes]);
}

function packet(first: number, ...parts: Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  const { length } = body;
  const head = length < 128 ? [length] : [(length & 0x7f) | 0x80, length >> 7];
  return Buffer.concat([Buffer.of(first, ...head), body]);
}

function matches(filter: string, topic: string): boolean {
  return filter === topic || (filter.endsWith("#") && topic.startsWith(filter.slice(0, -1)));
}

// Small packets: one of two bytes of length at most in each message, as the page sends them.
function answer(peers: Set<Peer>, peer: Peer, message: Buffer): void {
  const { socket } = peer;
  const at = message[1]! < 128 ? 2 : 3;
  const body = message.subarray(at);
  const id = body.subarray(0, 2);
  // Properties, which are none.
  const none = peer.version === 5 ? Buffer.of(0) : Buffer.alloc(0);
  switch (message[0]! >> 4) {
    case 1: {
      peer.version = body[6]!;
      const isBanned = body.includes("banned");
      const code = isBanned ? (peer.version === 5 ? 0x8a : 5) : 0;
      const properties = peer.version === 5 ? Buffer.of(0) : Buffer.alloc(0);
      socket.send(packet(0x20, Buffer.of(0, code), properties));
      return isBanned ? void socket.close() : undefined;
    }
    case 3: {
      const qos = (message[0]! >> 1) & 3;
      const length = body.readUInt16BE(0);
      const topic = body.subarray(2, 2 + length).toString();
      const rest = body.subarray(2 + length + (qos > 0 ? 2 : 0) + none.length);
      const isRefused = topic.startsWith("$SYS");
      if (qos === 1) {
        const own = body.subarray(2 + length, 4 + length);
        const answered = peer.version === 5 ? [Buffer.of(isRefused ? 0x87 : 0)] : [];
        socket.send(packet(0x40, own, ...answered));
      }
      if (isRefused) return;
      for (const other of peers) {
        const props = other.version === 5 ? Buffer.of(0) : Buffer.alloc(0);
        if ([...other.filters].some((filter) => matches(filter, topic)))
          other.socket.send(packet(0x30, text(topic), props, rest));
      }
      return;
    }
    case 8: {
      const filter = body.subarray(4 + none.length, body.length - 1).toString();
      const isRefused = filter.startsWith("secret");
      if (!isRefused) peer.filters.add(filter);
      const refusal = peer.version === 5 ? 0x87 : 0x80;
      socket.send(packet(0x90, id, none, Buffer.of(isRefused ? refusal : body.at(-1)!)));
      return;
    }
    case 10: {
      peer.filters.delete(body.subarray(4 + none.length).toString());
      socket.send(packet(0xb0, id, none, ...(peer.version === 5 ? [Buffer.of(0)] : [])));
      return;
    }
    case 12:
      return void socket.send(packet(0xd0));
    default:
  }
}

export interface MockMqtt {
  // Ends all connections as a broker does that is drained.
  drain: () => void;
}

export async function mqtt(page: Page, address: RegExp = /^wss?:/): Promise<MockMqtt> {
  const peers = new Set<Peer>();
  await page.routeWebSocket(address, (socket) => {
    const peer: Peer = { socket, version: 5, filters: new Set() };
    peers.add(peer);
    socket.onMessage((message) => answer(peers, peer, Buffer.from(message)));
    socket.onClose(() => peers.delete(peer));
  });
  const gone = packet(0xe0, Buffer.of(0x9c, 14), Buffer.of(0x1c), text("b2.example."));
  return { drain: () => peers.forEach(({ socket }) => socket.send(gone)) };
}
