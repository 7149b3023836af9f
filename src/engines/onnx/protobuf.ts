/**
 * The part of the protocol-buffer wire format that ONNX files need: varints, 32-bit floats and length-delimited
 * fields. Source: protobuf.dev/programming-guides/encoding. A message is built bottom-up from its fields' bytes.
 */

const varintWire = 0;
const lengthWire = 2;
const fixed32Wire = 5;

/** Negative integers take ten bytes (64-bit two's complement). Exact within ±2^53. */
function varint(value: number): Uint8Array {
  const bytes: number[] = [];
  let remaining = BigInt.asUintN(64, BigInt(value));
  while (remaining > 0x7fn) {
    bytes.push(Number(remaining & 0x7fn) | 0x80);
    remaining >>= 7n;
  }
  bytes.push(Number(remaining));
  return Uint8Array.from(bytes);
}

function tag(field: number, wire: number): Uint8Array {
  return varint(field * 8 + wire);
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(parts);
}

export function intField(field: number, value: number): Uint8Array {
  return concat([tag(field, varintWire), varint(value)]);
}

export function floatField(field: number, value: number): Uint8Array {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return concat([tag(field, fixed32Wire), bytes]);
}

/** A string, bytes or an embedded message (its fields already encoded). */
export function bytesField(field: number, value: Uint8Array | string | readonly Uint8Array[]): Uint8Array {
  const bytes =
    typeof value === 'string'
      ? Buffer.from(value, 'utf8')
      : value instanceof Uint8Array
        ? value
        : concat(value);
  return concat([tag(field, lengthWire), varint(bytes.length), bytes]);
}
