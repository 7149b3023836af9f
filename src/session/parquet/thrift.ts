/**
 * Writer for Thrift's compact protocol, limited to what Parquet's footer and page headers need
 * (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md).
 */
type ThriftValue =
  | { type: 'i32' | 'i64'; value: number }
  | { type: 'binary'; value: Uint8Array }
  | { type: 'struct'; value: ThriftStruct }
  | { type: 'list'; items: ThriftValue[] };

/** Field id -> value; ids in ascending order. */
export type ThriftStruct = readonly (readonly [number, ThriftValue])[];

const typeCodes = { i32: 5, i64: 6, binary: 8, list: 9, struct: 12 } as const;

export const i32 = (value: number): ThriftValue => ({ type: 'i32', value });
export const i64 = (value: number): ThriftValue => ({ type: 'i64', value });
export const binary = (value: Uint8Array | string): ThriftValue => ({
  type: 'binary',
  value: typeof value === 'string' ? Buffer.from(value) : value,
});
export const struct = (value: ThriftStruct): ThriftValue => ({ type: 'struct', value });
export const list = (items: ThriftValue[]): ThriftValue => ({ type: 'list', items });

/** @returns the bytes of a struct, including its stop field */
export function encodeThrift(value: ThriftStruct): Uint8Array {
  const out: number[] = [];
  writeStruct(out, value);
  return Uint8Array.from(out);
}

function writeStruct(out: number[], fields: ThriftStruct): void {
  let last = 0;
  for (const [id, value] of fields) {
    out.push(((id - last) << 4) | typeCodes[value.type]);
    last = id;
    writeValue(out, value);
  }
  out.push(0);
}

function writeValue(out: number[], value: ThriftValue): void {
  switch (value.type) {
    case 'i32':
    case 'i64':
      pushVarint(out, zigzag(value.value));
      return;
    case 'binary':
      pushVarint(out, BigInt(value.value.length));
      for (const byte of value.value) out.push(byte);
      return;
    case 'struct':
      writeStruct(out, value.value);
      return;
    case 'list': {
      const { items } = value;
      const code = items.length > 0 ? typeCodes[items[0]!.type] : typeCodes.i32;
      if (items.length < 15) out.push((items.length << 4) | code);
      else {
        out.push(0xf0 | code);
        pushVarint(out, BigInt(items.length));
      }
      for (const item of items) writeValue(out, item);
    }
  }
}

function zigzag(value: number): bigint {
  const big = BigInt(value);
  return big < 0n ? -2n * big - 1n : 2n * big;
}

function pushVarint(out: number[], value: bigint): void {
  let remaining = value;
  while (remaining > 127n) {
    out.push(Number(remaining & 127n) | 128);
    remaining >>= 7n;
  }
  out.push(Number(remaining));
}
