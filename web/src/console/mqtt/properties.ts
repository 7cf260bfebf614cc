// Properties of MQTT 5.0 (2.2.2).

import type { ByteReader } from "./bytes";
import { ByteWriter, Malformed } from "./bytes";

export const PROPERTY = {
  sessionExpiry: 0x11,
  assignedClientId: 0x12,
  serverKeepAlive: 0x13,
  serverReference: 0x1c,
  reason: 0x1f,
  receiveMaximum: 0x21,
  topicAlias: 0x23,
  qosMaximum: 0x24,
  retainAvailable: 0x25,
  user: 0x26,
  packetSizeMaximum: 0x27,
  subscriptionId: 0x0b,
} as const;

type Kind = "byte" | "u16" | "u32" | "varint" | "text" | "binary" | "pair";
const KINDS: Record<number, Kind> = {
  0x01: "byte", 0x02: "u32", 0x03: "text", 0x08: "text", 0x09: "binary", 0x0b: "varint",
  0x11: "u32", 0x12: "text", 0x13: "u16", 0x15: "text", 0x16: "binary", 0x17: "byte",
  0x18: "u32", 0x19: "byte", 0x1a: "text", 0x1c: "text", 0x1f: "text", 0x21: "u16",
  0x22: "u16", 0x23: "u16", 0x24: "byte", 0x25: "byte", 0x26: "pair", 0x27: "u32",
  0x28: "byte", 0x29: "byte", 0x2a: "byte",
};

export class Properties {
  private readonly numbers = new Map<number, number>();
  private readonly texts = new Map<number, string>();

  number(id: number): number | undefined {
    return this.numbers.get(id);
  }

  text(id: number): string | undefined {
    return this.texts.get(id);
  }

  // With their length before them.
  static read(from: ByteReader): Properties {
    const found = new Properties();
    const end = from.varint();
    const last = from.left - end;
    if (last < 0) throw new Malformed("the properties reach out of the packet");
    const seen = new Set<number>();
    while (from.left > last) {
      const id = from.varint();
      const mayRepeat = id === PROPERTY.user || id === PROPERTY.subscriptionId;
      if (seen.has(id) && !mayRepeat) throw new Malformed(`the property ${id} is there twice`);
      seen.add(id);
      found.take(id, from);
    }
    if (from.left < last) throw new Malformed("a property reaches out of the properties");
    return found;
  }

  private take(id: number, from: ByteReader): void {
    switch (KINDS[id]) {
      case "byte":
        return void this.numbers.set(id, from.u8());
      case "u16":
        return void this.numbers.set(id, from.u16());
      case "u32":
        return void this.numbers.set(id, from.u32());
      case "varint":
        return void this.numbers.set(id, from.varint());
      case "text":
        return void this.texts.set(id, from.text());
      case "binary":
        return void from.binary();
      case "pair":
        from.text();
        return void from.text();
      case undefined:
        throw new Malformed(`there is no property ${id}`);
    }
  }
}

// What a client sends: numbers of four bytes or two.
export function written(values: [id: number, value: number][]): Uint8Array {
  const inner = new ByteWriter();
  for (const [id, value] of values) {
    inner.u8(id);
    if (KINDS[id] === "u16") inner.u16(value);
    else inner.u32(value);
  }
  const bytes = inner.bytes();
  return new ByteWriter().varint(bytes.length).raw(bytes).bytes();
}
