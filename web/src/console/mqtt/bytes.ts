// Bytes of packets, written and read. Reading checks every length: what a server sends is not
// trusted.

export class Malformed extends Error {}

// The largest value of a variable byte integer.
export const VARINT_MAX = 268_435_455;

const encoder = new TextEncoder();
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export function utf8(text: string): Uint8Array {
  return encoder.encode(text);
}

export class ByteWriter {
  private readonly parts: number[] = [];

  u8(value: number): this {
    this.parts.push(value & 0xff);
    return this;
  }

  u16(value: number): this {
    return this.u8(value >> 8).u8(value);
  }

  u32(value: number): this {
    return this.u16(Math.floor(value / 65_536)).u16(value & 0xffff);
  }

  varint(value: number): this {
    let rest = value;
    do {
      const low = rest % 128;
      rest = Math.floor(rest / 128);
      this.u8(rest > 0 ? low | 0x80 : low);
    } while (rest > 0);
    return this;
  }

  raw(bytes: Uint8Array): this {
    for (const byte of bytes) this.parts.push(byte);
    return this;
  }

  // With its length in two bytes before it.
  binary(bytes: Uint8Array): this {
    if (bytes.length > 0xffff) throw new RangeError("a text of a packet has 65535 bytes at most");
    return this.u16(bytes.length).raw(bytes);
  }

  text(text: string): this {
    return this.binary(utf8(text));
  }

  bytes(): Uint8Array {
    return Uint8Array.from(this.parts);
  }
}

export class ByteReader {
  private at = 0;

  constructor(private readonly bytes: Uint8Array) {}

  get left(): number {
    return this.bytes.length - this.at;
  }

  u8(): number {
    const value = this.bytes[this.at];
    if (value === undefined) throw new Malformed("the packet ends too early");
    this.at += 1;
    return value;
  }

  u16(): number {
    return this.u8() * 256 + this.u8();
  }

  u32(): number {
    return this.u16() * 65_536 + this.u16();
  }

  varint(): number {
    let value = 0;
    for (let factor = 1; factor <= 128 ** 3; factor *= 128) {
      const byte = this.u8();
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
    throw new Malformed("a length has more than four bytes");
  }

  take(length: number): Uint8Array {
    if (length > this.left) throw new Malformed("a length reaches out of the packet");
    this.at += length;
    return this.bytes.subarray(this.at - length, this.at);
  }

  binary(): Uint8Array {
    return this.take(this.u16());
  }

  text(): string {
    const bytes = this.binary();
    try {
      return strict.decode(bytes);
    } catch {
      throw new Malformed("a text is not UTF-8");
    }
  }

  rest(): Uint8Array {
    return this.take(this.left);
  }
}
