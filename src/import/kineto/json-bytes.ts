/**
 * JSON as bytes. Every buffer ends in `sentinelBytes` zeros after its text, so that scanners need no bounds check in
 * their inner loops: a zero at or after the end means "more is needed", a zero inside the text is skipped.
 */
export const sentinelBytes = 8;

/** Returned by scanners instead of a position. */
export const incomplete = -1;
export const malformed = -2;

export const quote = 0x22;
const backslash = 0x5c;
export const comma = 0x2c;
export const colon = 0x3a;
export const openBrace = 0x7b;
export const closeBrace = 0x7d;
export const openBracket = 0x5b;
export const closeBracket = 0x5d;

export function skipSpace(bytes: Uint8Array, offset: number): number {
  let byte = bytes[offset]!;
  while (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) byte = bytes[++offset]!;
  return offset;
}

/** Bytes that a string scan skips; 0, quote and backslash stop the loop. */
const skippedInString = 1;
/** Bytes that a scan within brackets skips; quotes and brackets stop the loop. */
const skippedInBrackets = 2;
const byteClass = new Uint8Array(256).fill(skippedInString | skippedInBrackets);
byteClass[0] = 0;
byteClass[quote] = 0;
byteClass[backslash] = skippedInBrackets;
for (const bracket of [openBrace, closeBrace, openBracket, closeBracket])
  byteClass[bracket] = skippedInString;

/** @param offset of the opening quote. @returns the position after the closing one, or `incomplete` */
export function skipString(bytes: Uint8Array, offset: number, end: number): number {
  let position = offset + 1;
  for (;;) {
    let byte = bytes[position]!;
    while ((byteClass[byte]! & skippedInString) !== 0) byte = bytes[++position]!;
    if (position >= end) return incomplete;
    if (byte === quote) return position + 1;
    position += byte === backslash ? 2 : 1;
    if (position >= end) return incomplete;
  }
}

/** Skips any value. Nesting is counted without recursion, so its depth is not a problem. */
export function skipValue(bytes: Uint8Array, offset: number, end: number): number {
  const first = bytes[offset]!;
  if (first === quote) return skipString(bytes, offset, end);
  let position = offset;
  if (first !== openBracket && first !== openBrace) {
    for (;;) {
      const byte = bytes[position]!;
      // Digits, signs and points: most of the bytes.
      if (byte > comma && byte < colon) {
        position++;
        continue;
      }
      if (byte === comma || byte === closeBrace || byte === closeBracket)
        return position > offset && position < end ? position : malformed;
      if (position >= end) return incomplete;
      // A number, true, false, null, NaN: never a quote or an opening bracket.
      if (byte === quote || byte === openBrace || byte === openBracket || byte === colon) return malformed;
      position++;
    }
  }
  let depth = 0;
  for (;;) {
    let byte = bytes[position]!;
    while ((byteClass[byte]! & skippedInBrackets) !== 0) byte = bytes[++position]!;
    if (byte === quote) {
      position = skipString(bytes, position, end);
      if (position < 0) return position;
      continue;
    }
    position++;
    if (byte === openBracket || byte === openBrace) depth++;
    else if (byte === closeBracket || byte === closeBrace) {
      if (--depth === 0) return position <= end ? position : incomplete;
    } else if (position > end) return incomplete;
  }
}

/**
 * The text of a JSON string; the span includes the quotes. Unknown escapes and raw control characters occur in real
 * traces (pytorch #130622): they are kept literally and reported.
 */
export function decodeString(text: string, onRepair: () => void): string {
  const inner = text.slice(1, -1);
  // eslint-disable-next-line no-control-regex -- the pattern searches for control characters
  if (!/[\\\u0000-\u001f]/.test(inner)) return inner;
  try {
    return JSON.parse(text) as string;
  } catch {
    onRepair();
    return inner
      .replaceAll(/\\(u[0-9a-fA-F]{4}|[^])/g, (escaped, escape: string) => unescape(escaped, escape))
      .replaceAll('\0', '\u2400');
  }
}

function unescape(escaped: string, escape: string): string {
  if (escape.length === 5) return String.fromCharCode(parseInt(escape.slice(1), 16));
  const escapes: Record<string, string> = {
    n: '\n',
    t: '\t',
    r: '\r',
    b: '\b',
    f: '\f',
    '"': '"',
    '/': '/',
    '\\': '\\',
  };
  return escapes[escape] ?? escaped;
}
