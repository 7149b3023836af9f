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
  let c = bytes[offset]!;
  while (c === 0x20 || c === 0x0a || c === 0x0d || c === 0x09) c = bytes[++offset]!;
  return offset;
}

/** Bytes that a string scan skips; 0, quote and backslash stop the loop. */
const plainByte = 1;
/** Bytes that stop a scan within brackets: quotes and brackets. */
const nests = 2;
const byteClass = new Uint8Array(256).fill(plainByte | nests);
byteClass[0] = 0;
byteClass[quote] = 0;
byteClass[backslash] = nests;
for (const bracket of [openBrace, closeBrace, openBracket, closeBracket]) byteClass[bracket] = plainByte;

/** @param offset of the opening quote. @returns the position after the closing one, or `incomplete` */
export function skipString(bytes: Uint8Array, offset: number, end: number): number {
  let p = offset + 1;
  for (;;) {
    let c = bytes[p]!;
    while ((byteClass[c]! & plainByte) !== 0) c = bytes[++p]!;
    if (p >= end) return incomplete;
    if (c === quote) return p + 1;
    p += c === backslash ? 2 : 1;
    if (p >= end) return incomplete;
  }
}

/** Skips any value. Nesting is counted without recursion, so its depth is not a problem. */
export function skipValue(bytes: Uint8Array, offset: number, end: number): number {
  const first = bytes[offset]!;
  if (first === quote) return skipString(bytes, offset, end);
  let p = offset;
  if (first !== openBracket && first !== openBrace) {
    for (;;) {
      const c = bytes[p]!;
      // Digits, signs and points: most of the bytes.
      if (c > comma && c < colon) {
        p++;
        continue;
      }
      if (c === comma || c === closeBrace || c === closeBracket) return p > offset && p < end ? p : malformed;
      if (p >= end) return incomplete;
      // A number, true, false, null, NaN: never a quote or an opening bracket.
      if (c === quote || c === openBrace || c === openBracket || c === colon) return malformed;
      p++;
    }
  }
  let depth = 0;
  for (;;) {
    let c = bytes[p]!;
    while ((byteClass[c]! & nests) !== 0) c = bytes[++p]!;
    if (c === quote) {
      p = skipString(bytes, p, end);
      if (p < 0) return p;
      continue;
    }
    p++;
    if (c === openBracket || c === openBrace) depth++;
    else if (c === closeBracket || c === closeBrace) {
      if (--depth === 0) return p <= end ? p : incomplete;
    } else if (p > end) return incomplete;
  }
}

/**
 * The text of a JSON string; the span includes the quotes. Unknown escapes and raw control characters occur in real
 * traces (pytorch #130622): they are kept literally and reported.
 */
export function decodeString(text: string, repaired: () => void): string {
  const inner = text.slice(1, -1);
  // eslint-disable-next-line no-control-regex -- the pattern searches for control characters
  if (!/[\\\u0000-\u001f]/.test(inner)) return inner;
  try {
    return JSON.parse(text) as string;
  } catch {
    repaired();
    return inner
      .replaceAll(/\\(u[0-9a-fA-F]{4}|[^])/g, (escaped, escape: string) => unescape(escaped, escape))
      .replaceAll('\0', '\u2400');
  }
}

function unescape(escaped: string, escape: string): string {
  if (escape.length === 5) return String.fromCharCode(parseInt(escape.slice(1), 16));
  const known: Record<string, string> = {
    n: '\n',
    t: '\t',
    r: '\r',
    b: '\b',
    f: '\f',
    '"': '"',
    '/': '/',
    '\\': '\\',
  };
  return known[escape] ?? escaped;
}
