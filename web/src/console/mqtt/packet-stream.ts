// Packets from the messages of a WebSocket, which may hold several, or parts of one (MQTT 5.0, 6).

import { Malformed } from "./bytes";

export interface RawPacket {
  first: number;
  body: Uint8Array;
}

export class PacketStream {
  private waiting: Uint8Array = new Uint8Array();

  constructor(private readonly packetBytesMax: number) {}

  // The packets that are whole with these bytes.
  take(bytes: Uint8Array): RawPacket[] {
    const all = joined(this.waiting, bytes);
    const packets: RawPacket[] = [];
    let at = 0;
    for (;;) {
      const head = headAt(all, at);
      if (head === null) break;
      if (head.end - at > this.packetBytesMax)
        throw new Malformed(`a packet of ${head.end - at} bytes is larger than this client takes`);
      if (head.end > all.length) break;
      packets.push({ first: all[at]!, body: all.slice(head.begin, head.end) });
      at = head.end;
    }
    this.waiting = all.slice(at);
    return packets;
  }
}

function joined(one: Uint8Array, two: Uint8Array): Uint8Array {
  if (one.length === 0) return two;
  const both = new Uint8Array(one.length + two.length);
  both.set(one);
  both.set(two, one.length);
  return both;
}

// Where the body of the packet begins and ends; null: its head is not whole yet.
function headAt(bytes: Uint8Array, at: number): { begin: number; end: number } | null {
  let length = 0;
  for (let place = 0; place < 4; place += 1) {
    const byte = bytes[at + 1 + place];
    if (byte === undefined) return null;
    length += (byte & 0x7f) * 128 ** place;
    if (byte < 0x80) {
      const begin = at + 2 + place;
      return { begin, end: begin + length };
    }
  }
  throw new Malformed("a length has more than four bytes");
}
