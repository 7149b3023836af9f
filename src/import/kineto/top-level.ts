import {
  closeBrace,
  closeBracket,
  colon,
  comma,
  decodeString,
  incomplete,
  malformed,
  openBrace,
  openBracket,
  quote,
  skipSpace,
  skipString,
  skipValue,
} from './json-bytes.js';

interface TopLevel {
  /** events: `offset` is after the opening bracket of traceEvents. end: after the closing brace. */
  state: 'events' | 'end' | 'incomplete' | 'malformed';
  offset: number;
  /** A bare array of events, without an object around it. */
  isBareArray: boolean;
}

/** Maximum size of stored values; `metadata` of some tools contains whole configurations. */
const maxStoredValueBytes = 1 << 20;

/**
 * Reads keys of the outermost object until the array of events, or to the end.
 * @param facts filled with the values of the other keys
 */
export function readTopLevel(
  bytes: Uint8Array,
  from: number,
  end: number,
  isStart: boolean,
  facts: Map<string, unknown>,
): TopLevel {
  let offset = from;
  if (isStart) {
    offset = skipSpace(bytes, offset + (bytes[offset] === 0xef ? 3 : 0));
    if (offset >= end) return { state: 'incomplete', offset, isBareArray: false };
    if (bytes[offset] === openBracket) return { state: 'events', offset: offset + 1, isBareArray: true };
    if (bytes[offset] !== openBrace) return { state: 'malformed', offset, isBareArray: false };
    offset++;
  }
  for (;;) {
    offset = skipSpace(bytes, offset);
    if (bytes[offset] === comma) offset = skipSpace(bytes, offset + 1);
    if (offset >= end) return { state: 'incomplete', offset, isBareArray: false };
    if (bytes[offset] === closeBrace) return { state: 'end', offset: offset + 1, isBareArray: false };
    const keyEnd = bytes[offset] === quote ? skipString(bytes, offset, end) : malformed;
    if (keyEnd < 0) return failure(keyEnd, offset);
    const name = Buffer.from(bytes.buffer, bytes.byteOffset + offset + 1, keyEnd - offset - 2).toString(
      'utf8',
    );
    offset = skipSpace(bytes, keyEnd);
    if (offset >= end) return failure(incomplete, offset);
    if (bytes[offset] !== colon) return failure(malformed, offset);
    offset = skipSpace(bytes, offset + 1);
    if (offset >= end) return failure(incomplete, offset);
    if (name === 'traceEvents' && bytes[offset] === openBracket) {
      const first = skipSpace(bytes, offset + 1);
      if (first >= end) return failure(incomplete, offset);
      // An empty traceEvents is treated like any other key: a second traceEvents may have the events.
      if (bytes[first] !== closeBracket) return { state: 'events', offset: offset + 1, isBareArray: false };
    }
    const after = skipValue(bytes, offset, end);
    if (after < 0) return failure(after, offset);
    if (after - offset <= maxStoredValueBytes) facts.set(name, parseValue(bytes, offset, after));
    offset = after;
  }
}

function failure(code: number, offset: number): TopLevel {
  return { state: code === incomplete ? 'incomplete' : 'malformed', offset, isBareArray: false };
}

function parseValue(bytes: Uint8Array, from: number, to: number): unknown {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from)
    .toString('utf8')
    .trim();
  // Above 2^53 a number would lose digits: stored as text.
  if (/^-?\d{16,}$/.test(text)) return text;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text.startsWith('"') ? decodeString(text, () => undefined) : null;
  }
}
