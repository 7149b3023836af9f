import {
  closeBrace,
  closeBracket,
  colon,
  comma,
  incomplete,
  malformed,
  openBrace,
  openBracket,
  quote,
  skipSpace,
  skipString,
  skipValue,
} from './json-bytes.js';

/** Fields of one event; spans are positions in the buffer, 0 for absent. Reused from event to event. */
export interface EventFields {
  phase: number;
  catFrom: number;
  catTo: number;
  nameFrom: number;
  nameTo: number;
  /** NaN if absent or a text ("Spans"). */
  pid: number;
  tid: number;
  /** Whole µs and the ns after them: a double of epoch µs would step by 0.25 µs. */
  tsUs: number;
  tsNs: number;
  durUs: number;
  durNs: number;
  external: number;
  correlation: number;
  device: number;
  context: number;
  stream: number;
  registers: number;
  shared: number;
  graphId: number;
  graphNode: number;
  bytes: number;
  deviceType: number;
  allocated: number;
  reserved: number;
  gridFrom: number;
  gridTo: number;
  blockFrom: number;
  blockTo: number;
  shapesFrom: number;
  shapesTo: number;
  typesFrom: number;
  typesTo: number;
  /** Only in communication kernels: the call of torch.distributed (c10d's ParamCommsDebugInfo). */
  collectiveFrom: number;
  collectiveTo: number;
  groupFrom: number;
  groupTo: number;
  groupRanksFrom: number;
  groupRanksTo: number;
  groupTextFrom: number;
  groupTextTo: number;
  dtypeFrom: number;
  dtypeTo: number;
  groupSize: number;
  sentElements: number;
  receivedElements: number;
  sequence: number;
  /** The other rank of a send or receive. */
  peer: number;
}

const none = Number.NaN;

export function freshFields(): EventFields {
  const fields = {} as EventFields;
  clear(fields);
  return fields;
}

function clear(f: EventFields): void {
  f.phase = f.catFrom = f.catTo = f.nameFrom = f.nameTo = 0;
  f.pid = f.tid = f.tsUs = f.durUs = none;
  f.tsNs = f.durNs = 0;
  f.external = f.correlation = f.device = f.context = f.stream = f.registers = f.shared = none;
  f.graphId = f.graphNode = f.bytes = f.deviceType = f.allocated = f.reserved = none;
  f.gridFrom = f.gridTo = f.blockFrom = f.blockTo = 0;
  f.shapesFrom = f.shapesTo = f.typesFrom = f.typesTo = 0;
  f.collectiveFrom = f.collectiveTo = f.groupFrom = f.groupTo = f.groupRanksFrom = f.groupRanksTo = 0;
  f.groupTextFrom = f.groupTextTo = f.dtypeFrom = f.dtypeTo = 0;
  f.groupSize = f.sentElements = f.receivedElements = f.sequence = f.peer = none;
}

/**
 * Reads the event with its opening brace at `offset`. The last of duplicate keys wins.
 * @returns the position after it, `incomplete` or `malformed`
 */
export function readEvent(b: Uint8Array, offset: number, end: number, f: EventFields): number {
  clear(f);
  let p = offset + 1;
  for (;;) {
    const key = keyAt(b, p, end);
    if (key <= 0) return key < 0 ? key : afterObject;
    const length = keyLength;
    p = afterKey;
    const from = p;
    const first = b[key]!;
    if (length === 4 && first === 0x61 && b[p] === openBrace) {
      p = readArgs(b, p, end, f); // args
      if (p < 0) return p;
      continue;
    }
    p = skipValue(b, p, end);
    if (p < 0) return p;
    if (length === 2) {
      if (first === 0x70 && b[key + 1] === 0x68) f.phase = b[from + 1]!; // ph
      else if (first === 0x74 && b[key + 1] === 0x73) {
        f.tsUs = micros(b, from, p); // ts
        f.tsNs = fraction;
      }
    } else if (length === 3) {
      if (first === 0x63) {
        f.catFrom = from; // cat
        f.catTo = p;
      } else if (first === 0x70) f.pid = number(b, from, p);
      else if (first === 0x74) f.tid = number(b, from, p);
      else if (first === 0x64) {
        f.durUs = micros(b, from, p); // dur
        f.durNs = fraction;
      }
    } else if (length === 4 && first === 0x6e && b[from] === quote) {
      f.nameFrom = from; // name
      f.nameTo = p;
    }
  }
}

function readArgs(b: Uint8Array, offset: number, end: number, f: EventFields): number {
  let p = offset + 1;
  for (;;) {
    const key = keyAt(b, p, end);
    if (key <= 0) return key < 0 ? key : afterObject;
    const from = afterKey;
    p = skipValue(b, from, end);
    if (p < 0) return p;
    readArgument(b, key, keyLength, from, p, f);
  }
}

/**
 * Results of `keyAt`: the length of the key and the position of its value, or the position after an object that ended.
 */
let keyLength = 0;
let afterKey = 0;
let afterObject = 0;

/** @returns where the text of the next key starts; 0 at the end of the object, `incomplete` or `malformed` */
function keyAt(b: Uint8Array, offset: number, end: number): number {
  let p = offset;
  // Commas count as whitespace: superfluous ones are accepted.
  let c = b[p]!;
  while (c === 0x20 || c === comma || c === 0x0a || c === 0x0d || c === 0x09) c = b[++p]!;
  if (c === closeBrace) {
    afterObject = p + 1;
    return p < end ? 0 : incomplete;
  }
  if (c !== quote) return p >= end ? incomplete : malformed;
  const key = p + 1;
  p = skipString(b, p, end);
  if (p < 0) return p;
  keyLength = p - 1 - key;
  if (b[p] !== colon) {
    p = skipSpace(b, p);
    if (b[p] !== colon) return p >= end ? incomplete : malformed;
  }
  afterKey = skipSpace(b, p + 1);
  return key;
}

/** Identified by length and one or two letters among all keys seen; case changed with versions. */
function readArgument(
  b: Uint8Array,
  key: number,
  length: number,
  from: number,
  to: number,
  f: EventFields,
): void {
  const first = b[key]! | 0x20;
  switch (length) {
    case 3: // Seq
      if (first === 0x73) f.sequence = number(b, from, to);
      break;
    case 4: // grid
      if (first === 0x67 && b[from] === openBracket) {
        f.gridFrom = from;
        f.gridTo = to;
      }
      break;
    case 5: // block, bytes / Bytes, dtype
      if (first === 0x64) {
        f.dtypeFrom = from;
        f.dtypeTo = to;
      } else if (first === 0x62) {
        if ((b[key + 1]! | 0x20) === 0x79) f.bytes = size(b, from, to);
        else if (b[from] === openBracket) {
          f.blockFrom = from;
          f.blockTo = to;
        }
      }
      break;
    case 6: // device, stream
      if (first === 0x64 && (b[key + 2]! | 0x20) === 0x76) f.device = device(b, from, to);
      else if (first === 0x73) f.stream = number(b, from, to);
      break;
    case 7: // context
      if (first === 0x63) f.context = number(b, from, to);
      break;
    case 8: // graph id, Src Rank, Dst Rank
      if (first === 0x67) f.graphId = number(b, from, to);
      else if ((first === 0x73 || first === 0x64) && (b[key + 4]! | 0x20) === 0x72)
        f.peer = number(b, from, to);
      break;
    case 9: // Device Id
      if (first === 0x64) f.device = number(b, from, to);
      break;
    case 10: // Input Dims, Input type, Group size
      if (first === 0x67) f.groupSize = number(b, from, to);
      else if (first === 0x69 && b[from] === openBracket) {
        if ((b[key + 6]! | 0x20) === 0x64) {
          f.shapesFrom = from;
          f.shapesTo = to;
        } else if ((b[key + 6]! | 0x20) === 0x74) {
          f.typesFrom = from;
          f.typesTo = to;
        }
      }
      break;
    case 11: // External id, correlation, Device Type
      if (first === 0x65) f.external = number(b, from, to);
      else if (first === 0x63) f.correlation = number(b, from, to);
      else if (first === 0x64) f.deviceType = number(b, from, to);
      break;
    case 13: // shared memory, graph node id, In msg nelems; not In split size
      if (first === 0x73) f.shared = number(b, from, to);
      else if (first === 0x69 && b[key + 3] === 0x6d) f.sentElements = number(b, from, to);
      else if (first === 0x67) f.graphNode = number(b, from, to);
      break;
    case 14: // Total Reserved, Out msg nelems; not Out split size
      if (first === 0x74) f.reserved = number(b, from, to);
      else if (first === 0x6f && b[key + 4] === 0x6d) f.receivedElements = number(b, from, to);
      break;
    case 15: // Total Allocated, Collective name
      if (first === 0x74) f.allocated = number(b, from, to);
      else if (first === 0x63 && b[from] === quote) {
        f.collectiveFrom = from;
        f.collectiveTo = to;
      }
      break;
    case 18: // Process Group Name
      if (first === 0x70 && b[from] === quote) {
        f.groupFrom = from;
        f.groupTo = to;
      }
      break;
    case 19: // Process Group Ranks: a list, or its text
      if (first === 0x70) {
        f.groupRanksFrom = from;
        f.groupRanksTo = to;
      }
      break;
    case 20: // registers per thread
      if (first === 0x72) f.registers = number(b, from, to);
      break;
    case 25: // Process Group Description
      if (first === 0x70 && b[from] === quote) {
        f.groupTextFrom = from;
        f.groupTextTo = to;
      }
      break;
  }
}

/** ns after the whole µs of the last `micros`. */
let fraction = 0;

/**
 * Decimal µs as whole µs (returned) and whole ns after them (`fraction`), both exact: 1694039968955744.519 has 19
 * digits, a double 16. A fourth decimal is rounded.
 */
function micros(b: Uint8Array, from: number, to: number): number {
  fraction = 0;
  let p = from;
  const negative = b[p] === 0x2d;
  if (negative) p++;
  let integer = 0;
  const digits = p;
  for (; p < to; p++) {
    const d = b[p]! - 48;
    if (d < 0 || d > 9) break;
    integer = integer * 10 + d;
  }
  if (p === digits) return none;
  let ns = 0;
  if (p < to && b[p] === 0x2e) {
    let scale = 100;
    for (p++; p < to; p++) {
      const d = b[p]! - 48;
      if (d < 0 || d > 9) break;
      if (scale >= 1) ns += d * scale;
      else if (scale === 0.1 && d >= 5) ns++;
      scale = scale === 1 ? 0.1 : scale === 0.1 ? 0 : scale / 10;
    }
  }
  if (p < to && (b[p]! | 0x20) === 0x65) {
    // An exponent: 1.5e3. Such a writer has already lost digits.
    const value = Number(Buffer.from(b.buffer, b.byteOffset + from, to - from).toString('latin1'));
    const us = Math.floor(value);
    fraction = Math.round((value - us) * 1000);
    return us;
  }
  fraction = negative ? -ns : ns;
  return negative ? -integer : integer;
}

/** As `number`; numbers with more digits become Infinity, so that they can be counted. */
function size(b: Uint8Array, from: number, to: number): number {
  const value = number(b, from, to);
  const digit = b[from]! - 48;
  return value !== value && digit >= 0 && digit <= 9 ? Number.POSITIVE_INFINITY : value;
}

/** As `number`; a value that is not a number becomes -1, which no machine has, so that it can be counted. */
function device(b: Uint8Array, from: number, to: number): number {
  const value = number(b, from, to);
  const isNull = b[from] === 0x6e;
  return value !== value && !isNull ? -1 : value;
}

/** Integers to 2^53, a decimal's whole part; a quoted number is read too. NaN for anything else and for more digits. */
function number(b: Uint8Array, from: number, to: number): number {
  let p = from;
  if (b[p] === quote) p++;
  const negative = b[p] === 0x2d;
  if (negative) p++;
  const digits = p;
  let value = 0;
  for (; p < to; p++) {
    const d = b[p]! - 48;
    if (d < 0 || d > 9) break;
    value = value * 10 + d;
  }
  const next = p < to ? b[p]! : 0;
  // A text ("PyTorch Profiler"), true or null: not a number.
  const isComplete = next === 0 || next === quote || next === 0x2e || next <= 0x20 || next === closeBracket;
  if (p === digits || !isComplete || value > Number.MAX_SAFE_INTEGER) return none;
  return negative ? -value : value;
}
