import { closeBrace, comma, openBrace, skipSpace } from './json-bytes.js';

/**
 * Keys that start an event. `{"ph":` with an unescaped quote cannot occur inside a JSON string, so the only other place is
 * an object nested in an event's args. A parser that starts there finds an unfinished event at the end of the previous
 * chunk, and the file is then read by one thread from the start.
 */
const firstKeys = ['"ph"', '"name"', '"cat"'];

/** Start of the last event of the buffer that has another before it, or -1. */
export function lastEventStart(buffer: Buffer, end: number): number {
  let best = -1;
  for (const key of firstKeys) {
    let offset = end;
    while (offset > best) {
      offset = buffer.subarray(0, offset).lastIndexOf(key);
      if (offset < 0) break;
      const brace = braceBefore(buffer, offset);
      if (brace > 0) {
        best = Math.max(best, brace);
        break;
      }
    }
  }
  return best;
}

/** Start of the next event at or after `from`, or -1. */
export function nextEvent(bytes: Uint8Array, from: number, end: number): number {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, end);
  let best = -1;
  for (const key of firstKeys) {
    let offset = from;
    for (;;) {
      offset = buffer.indexOf(key, offset);
      if (offset < 0) break;
      const brace = braceBefore(buffer, offset);
      if (brace >= from) {
        if (best < 0 || brace < best) best = brace;
        break;
      }
      offset++;
    }
  }
  return best;
}

/** `offset` is a key; returns the opening brace of its object if that follows another object, `}, {`. */
function braceBefore(bytes: Uint8Array, offset: number): number {
  const brace = skipSpaceBack(bytes, offset - 1);
  if (bytes[brace] !== openBrace) return -1;
  const separator = skipSpaceBack(bytes, brace - 1);
  if (bytes[separator] !== comma) return -1;
  return bytes[skipSpaceBack(bytes, separator - 1)] === closeBrace ? brace : -1;
}

function skipSpaceBack(bytes: Uint8Array, offset: number): number {
  while (offset > 0 && skipSpace(bytes, offset) !== offset) offset--;
  return offset;
}
