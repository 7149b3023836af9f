/**
 * Records of SQLite's file format (https://sqlite.org/fileformat2.html, section 2): a header of varints, its own
 * length first, then one serial type per column; the values follow in the same order.
 */

export type SqliteValue = number | bigint | string | null;

/** Bytes per value by serial type below 12; 10 and 11 are reserved. */
const sizes = [0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0];

export function serialSize(type: number): number {
  return type < 12 ? sizes[type]! : (type - (type % 2 ? 13 : 12)) / 2;
}

/** Read position after the last varint. A field, because an object per varint would cost more than the varint. */
export const cursor = { next: 0 };

/** Varint at `offset`; `cursor.next` is set after it. Values over 2^53 lose their low bits (lengths are always smaller). */
export function varint(bytes: Uint8Array, offset: number): number {
  let byte = bytes[offset]!;
  if (byte < 0x80) {
    cursor.next = offset + 1;
    return byte;
  }
  let value = byte & 0x7f;
  for (let i = 1; i < 8; i++) {
    byte = bytes[offset + i]!;
    value = value * 128 + (byte & 0x7f);
    if (byte < 0x80) {
      cursor.next = offset + i + 1;
      return value;
    }
  }
  cursor.next = offset + 9;
  return value * 256 + bytes[offset + 8]!;
}

/** The low and the high half of an integer of serial type 1 to 6, 8 or 9: 64 bits do not fit a double. */
export const halves = { high: 0, low: 0 };

export function readHalves(bytes: Uint8Array, view: DataView, offset: number, type: number): void {
  if (type === 6) {
    halves.high = view.getInt32(offset);
    halves.low = view.getUint32(offset + 4);
  } else if (type === 5) {
    halves.high = view.getInt16(offset);
    halves.low = view.getUint32(offset + 2);
  } else {
    const value = readNumber(bytes, view, offset, type);
    halves.high = value < 0 ? -1 : 0;
    halves.low = value >>> 0;
  }
}

/** A numeric value as a double, exact to 2^53; NaN for null and for anything that is not a number. */
export function readNumber(bytes: Uint8Array, view: DataView, offset: number, type: number): number {
  switch (type) {
    case 1:
      return (bytes[offset]! << 24) >> 24;
    case 2:
      return ((bytes[offset]! << 24) >> 16) | bytes[offset + 1]!;
    case 3:
      return ((bytes[offset]! << 24) >> 8) | (bytes[offset + 1]! << 8) | bytes[offset + 2]!;
    case 4:
      return (
        (bytes[offset]! << 24) | (bytes[offset + 1]! << 16) | (bytes[offset + 2]! << 8) | bytes[offset + 3]!
      );
    case 5:
      return view.getInt16(offset) * 2 ** 32 + view.getUint32(offset + 2);
    case 6:
      return view.getInt32(offset) * 2 ** 32 + view.getUint32(offset + 4);
    case 7:
      return view.getFloat64(offset);
    case 8:
      return 0;
    case 9:
      return 1;
    default:
      return Number.NaN;
  }
}

/**
 * All values of one record. Blobs, which are not needed, are null.
 * @throws RangeError if it is truncated
 */
export function readRecord(payload: Uint8Array): SqliteValue[] {
  const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
  const headerEnd = varint(payload, 0);
  let offset = cursor.next;
  let body = headerEnd;
  const values: SqliteValue[] = [];
  if (headerEnd > payload.length) throw new RangeError('record header longer than the record');
  while (offset < headerEnd) {
    const type = varint(payload, offset);
    offset = cursor.next;
    const size = serialSize(type);
    if (body + size > payload.length) throw new RangeError('value longer than its record');
    if (type >= 13 && type % 2)
      values.push(Buffer.from(payload.buffer, payload.byteOffset + body, size).toString('utf8'));
    else if (type === 6) {
      const value = view.getBigInt64(body);
      const small = Number(value);
      values.push(Number.isSafeInteger(small) ? small : value);
    } else {
      const value = readNumber(payload, view, body, type);
      values.push(Number.isNaN(value) ? null : value);
    }
    body += size;
  }
  return values;
}
