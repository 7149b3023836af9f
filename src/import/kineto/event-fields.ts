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

const absent = Number.NaN;

export function createFields(): EventFields {
  const fields = {} as EventFields;
  clear(fields);
  return fields;
}

function clear(fields: EventFields): void {
  fields.phase = fields.catFrom = fields.catTo = fields.nameFrom = fields.nameTo = 0;
  fields.pid = fields.tid = fields.tsUs = fields.durUs = absent;
  fields.tsNs = fields.durNs = 0;
  fields.external =
    fields.correlation =
    fields.device =
    fields.context =
    fields.stream =
    fields.registers =
    fields.shared =
      absent;
  fields.graphId =
    fields.graphNode =
    fields.bytes =
    fields.deviceType =
    fields.allocated =
    fields.reserved =
      absent;
  fields.gridFrom = fields.gridTo = fields.blockFrom = fields.blockTo = 0;
  fields.shapesFrom = fields.shapesTo = fields.typesFrom = fields.typesTo = 0;
  fields.collectiveFrom =
    fields.collectiveTo =
    fields.groupFrom =
    fields.groupTo =
    fields.groupRanksFrom =
    fields.groupRanksTo =
      0;
  fields.groupTextFrom = fields.groupTextTo = fields.dtypeFrom = fields.dtypeTo = 0;
  fields.groupSize = fields.sentElements = fields.receivedElements = fields.sequence = fields.peer = absent;
}

/**
 * Reads the event with its opening brace at `offset`. The last of duplicate keys wins.
 * @returns the position after it, `incomplete` or `malformed`
 */
export function readEvent(bytes: Uint8Array, offset: number, end: number, fields: EventFields): number {
  clear(fields);
  let position = offset + 1;
  // One loop for the event and its args, because a function that reads keys costs a tenth of the parser's time.
  let isInArgs = false;
  for (;;) {
    // Commas count as whitespace: superfluous ones are accepted.
    let byte = bytes[position]!;
    while (byte === 0x20 || byte === comma || byte === 0x0a || byte === 0x0d || byte === 0x09)
      byte = bytes[++position]!;
    if (byte === closeBrace) {
      if (position >= end) return incomplete;
      position++;
      if (!isInArgs) return position;
      isInArgs = false;
      continue;
    }
    if (byte !== quote) return position >= end ? incomplete : malformed;
    const key = position + 1;
    position = skipString(bytes, position, end);
    if (position < 0) return position;
    const length = position - 1 - key;
    if (bytes[position] !== colon) {
      position = skipSpace(bytes, position);
      if (bytes[position] !== colon) return position >= end ? incomplete : malformed;
    }
    position = skipSpace(bytes, position + 1);
    const from = position;
    const first = bytes[key]!;
    if (!isInArgs && length === 4 && first === 0x61 && bytes[position] === openBrace) {
      isInArgs = true; // args
      position++;
      continue;
    }
    position = skipValue(bytes, position, end);
    if (position < 0) return position;
    if (isInArgs) {
      readArgument(bytes, key, length, from, position, fields);
      continue;
    }
    if (length === 2) {
      if (first === 0x70 && bytes[key + 1] === 0x68) fields.phase = bytes[from + 1]!; // ph
      else if (first === 0x74 && bytes[key + 1] === 0x73) {
        fields.tsUs = readMicros(bytes, from, position); // ts
        fields.tsNs = fraction;
      }
    } else if (length === 3) {
      if (first === 0x63) {
        fields.catFrom = from; // cat
        fields.catTo = position;
      } else if (first === 0x70) fields.pid = readNumber(bytes, from, position);
      else if (first === 0x74) fields.tid = readNumber(bytes, from, position);
      else if (first === 0x64) {
        fields.durUs = readMicros(bytes, from, position); // dur
        fields.durNs = fraction;
      }
    } else if (length === 4 && first === 0x6e && bytes[from] === quote) {
      fields.nameFrom = from; // name
      fields.nameTo = position;
    }
  }
}

/** Identified by length and one or two letters among all keys seen; case changed with versions. */
function readArgument(
  bytes: Uint8Array,
  key: number,
  length: number,
  from: number,
  to: number,
  fields: EventFields,
): void {
  const first = bytes[key]! | 0x20;
  switch (length) {
    case 3: // Seq
      if (first === 0x73) fields.sequence = readNumber(bytes, from, to);
      break;
    case 4: // grid
      if (first === 0x67 && bytes[from] === openBracket) {
        fields.gridFrom = from;
        fields.gridTo = to;
      }
      break;
    case 5: // block, bytes / Bytes, dtype
      if (first === 0x64) {
        fields.dtypeFrom = from;
        fields.dtypeTo = to;
      } else if (first === 0x62) {
        if ((bytes[key + 1]! | 0x20) === 0x79) fields.bytes = readSize(bytes, from, to);
        else if (bytes[from] === openBracket) {
          fields.blockFrom = from;
          fields.blockTo = to;
        }
      }
      break;
    case 6: // device, stream
      if (first === 0x64 && (bytes[key + 2]! | 0x20) === 0x76) fields.device = readDevice(bytes, from, to);
      else if (first === 0x73) fields.stream = readNumber(bytes, from, to);
      break;
    case 7: // context
      if (first === 0x63) fields.context = readNumber(bytes, from, to);
      break;
    case 8: // graph id, Src Rank, Dst Rank
      if (first === 0x67) fields.graphId = readNumber(bytes, from, to);
      else if ((first === 0x73 || first === 0x64) && (bytes[key + 4]! | 0x20) === 0x72)
        fields.peer = readNumber(bytes, from, to);
      break;
    case 9: // Device Id
      if (first === 0x64) fields.device = readNumber(bytes, from, to);
      break;
    case 10: // Input Dims, Input type, Group size
      if (first === 0x67) fields.groupSize = readNumber(bytes, from, to);
      else if (first === 0x69 && bytes[from] === openBracket) {
        if ((bytes[key + 6]! | 0x20) === 0x64) {
          fields.shapesFrom = from;
          fields.shapesTo = to;
        } else if ((bytes[key + 6]! | 0x20) === 0x74) {
          fields.typesFrom = from;
          fields.typesTo = to;
        }
      }
      break;
    case 11: // External id, correlation, Device Type
      if (first === 0x65) fields.external = readNumber(bytes, from, to);
      else if (first === 0x63) fields.correlation = readNumber(bytes, from, to);
      else if (first === 0x64) fields.deviceType = readNumber(bytes, from, to);
      break;
    case 13: // shared memory, graph node id, In msg nelems; not In split size
      if (first === 0x73) fields.shared = readNumber(bytes, from, to);
      else if (first === 0x69 && bytes[key + 3] === 0x6d) fields.sentElements = readNumber(bytes, from, to);
      else if (first === 0x67) fields.graphNode = readNumber(bytes, from, to);
      break;
    case 14: // Total Reserved, Out msg nelems; not Out split size
      if (first === 0x74) fields.reserved = readNumber(bytes, from, to);
      else if (first === 0x6f && bytes[key + 4] === 0x6d)
        fields.receivedElements = readNumber(bytes, from, to);
      break;
    case 15: // Total Allocated, Collective name
      if (first === 0x74) fields.allocated = readNumber(bytes, from, to);
      else if (first === 0x63 && bytes[from] === quote) {
        fields.collectiveFrom = from;
        fields.collectiveTo = to;
      }
      break;
    case 18: // Process Group Name
      if (first === 0x70 && bytes[from] === quote) {
        fields.groupFrom = from;
        fields.groupTo = to;
      }
      break;
    case 19: // Process Group Ranks: a list, or its text
      if (first === 0x70) {
        fields.groupRanksFrom = from;
        fields.groupRanksTo = to;
      }
      break;
    case 20: // registers per thread
      if (first === 0x72) fields.registers = readNumber(bytes, from, to);
      break;
    case 25: // Process Group Description
      if (first === 0x70 && bytes[from] === quote) {
        fields.groupTextFrom = from;
        fields.groupTextTo = to;
      }
      break;
  }
}

/** ns after the whole µs of the last `readMicros`. */
let fraction = 0;

/**
 * Decimal µs as whole µs (returned) and whole ns after them (`fraction`), both exact: 1694039968955744.519 has 19
 * digits, a double 16. A fourth decimal is rounded.
 */
function readMicros(bytes: Uint8Array, from: number, to: number): number {
  fraction = 0;
  let position = from;
  const negative = bytes[position] === 0x2d;
  if (negative) position++;
  let integer = 0;
  const digits = position;
  for (; position < to; position++) {
    const digit = bytes[position]! - 48;
    if (digit < 0 || digit > 9) break;
    integer = integer * 10 + digit;
  }
  if (position === digits) return absent;
  let ns = 0;
  if (position < to && bytes[position] === 0x2e) {
    let scale = 100;
    for (position++; position < to; position++) {
      const digit = bytes[position]! - 48;
      if (digit < 0 || digit > 9) break;
      if (scale >= 1) ns += digit * scale;
      else if (scale === 0.1 && digit >= 5) ns++;
      scale = scale === 1 ? 0.1 : scale === 0.1 ? 0 : scale / 10;
    }
  }
  if (position < to && (bytes[position]! | 0x20) === 0x65) {
    // An exponent: 1.5e3. Such a writer has already lost digits.
    const value = Number(Buffer.from(bytes.buffer, bytes.byteOffset + from, to - from).toString('latin1'));
    const us = Math.floor(value);
    fraction = Math.round((value - us) * 1000);
    return us;
  }
  fraction = negative ? -ns : ns;
  return negative ? -integer : integer;
}

/** Like readNumber, but numbers with more digits become Infinity, so that they can be counted. */
function readSize(bytes: Uint8Array, from: number, to: number): number {
  const value = readNumber(bytes, from, to);
  const digit = bytes[from]! - 48;
  return value !== value && digit >= 0 && digit <= 9 ? Number.POSITIVE_INFINITY : value;
}

/** Like readNumber, but a value that is not a number becomes -1, which no machine has, so that it can be counted. */
function readDevice(bytes: Uint8Array, from: number, to: number): number {
  const value = readNumber(bytes, from, to);
  const isNull = bytes[from] === 0x6e;
  return value !== value && !isNull ? -1 : value;
}

/** Integers to 2^53, a decimal's whole part; a quoted number is read too. NaN for anything else and for more digits. */
function readNumber(bytes: Uint8Array, from: number, to: number): number {
  let position = from;
  if (bytes[position] === quote) position++;
  const negative = bytes[position] === 0x2d;
  if (negative) position++;
  const digits = position;
  let value = 0;
  for (; position < to; position++) {
    const digit = bytes[position]! - 48;
    if (digit < 0 || digit > 9) break;
    value = value * 10 + digit;
  }
  const next = position < to ? bytes[position]! : 0;
  // A text ("PyTorch Profiler"), true or null: not a number.
  const isComplete = next === 0 || next === quote || next === 0x2e || next <= 0x20 || next === closeBracket;
  if (position === digits || !isComplete || value > Number.MAX_SAFE_INTEGER) return absent;
  return negative ? -value : value;
}
