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
  /** events: `at` is after the opening bracket of traceEvents. end: after the closing brace. */
  state: 'events' | 'end' | 'incomplete' | 'malformed';
  at: number;
  /** A bare array of events, without an object around it. */
  bare: boolean;
}

/** Maximum size of stored values; `metadata` of some tools contains whole configurations. */
const keptValueBytes = 1 << 20;

/**
 * Reads keys of the outermost object until the array of events, or to the end.
 * @param facts filled with the values of the other keys
 */
export function readTopLevel(
  bytes: Uint8Array,
  from: number,
  end: number,
  start: boolean,
  facts: Map<string, unknown>,
): TopLevel {
  let at = from;
  if (start) {
    at = skipSpace(bytes, at + (bytes[at] === 0xef ? 3 : 0));
    if (at >= end) return { state: 'incomplete', at, bare: false };
    if (bytes[at] === openBracket) return { state: 'events', at: at + 1, bare: true };
    if (bytes[at] !== openBrace) return { state: 'malformed', at, bare: false };
    at++;
  }
  for (;;) {
    at = skipSpace(bytes, at);
    if (bytes[at] === comma) at = skipSpace(bytes, at + 1);
    if (at >= end) return { state: 'incomplete', at, bare: false };
    if (bytes[at] === closeBrace) return { state: 'end', at: at + 1, bare: false };
    const key = bytes[at] === quote ? skipString(bytes, at, end) : malformed;
    if (key < 0) return failed(key, at);
    const name = Buffer.from(bytes.buffer, bytes.byteOffset + at + 1, key - at - 2).toString('utf8');
    at = skipSpace(bytes, key);
    if (at >= end) return failed(incomplete, at);
    if (bytes[at] !== colon) return failed(malformed, at);
    at = skipSpace(bytes, at + 1);
    if (at >= end) return failed(incomplete, at);
    if (name === 'traceEvents' && bytes[at] === openBracket) {
      const first = skipSpace(bytes, at + 1);
      if (first >= end) return failed(incomplete, at);
      // An empty traceEvents is treated like any other key: a second traceEvents may have the events.
      if (bytes[first] !== closeBracket) return { state: 'events', at: at + 1, bare: false };
    }
    const after = skipValue(bytes, at, end);
    if (after < 0) return failed(after, at);
    if (after - at <= keptValueBytes) facts.set(name, value(bytes, at, after));
    at = after;
  }
}

function failed(code: number, at: number): TopLevel {
  return { state: code === incomplete ? 'incomplete' : 'malformed', at, bare: false };
}

function value(bytes: Uint8Array, from: number, to: number): unknown {
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
