/** Readers of the JSON that AMD's tools print. */

export type Json = unknown;

/** The document in a tool's output: warnings may precede it. @throws SyntaxError */
export function toolJson(stdout: string): Json {
  const start = stdout.search(/[[{]\s*["{[\]}]/);
  if (start < 0) throw new SyntaxError('the tool printed no JSON');
  return JSON.parse(stdout.slice(start)) as Json;
}

export function fieldOf(value: Json, name: string): Json {
  return typeof value === 'object' && value !== null ? (value as Record<string, Json>)[name] : undefined;
}

/** Value at a path of keys in nested objects; undefined if the path ends early ("usage": "N/A"). */
export function valueAtPath(value: Json, ...path: string[]): Json {
  return path.reduce<Json>((inner, name) => fieldOf(inner, name), value);
}

interface Quantity {
  value: number;
  unit: string;
}

/** `{"value": 42, "unit": "%"}`, 42, "42", "42 W", "(1090Mhz)". Null for "N/A" and absent values. */
export function quantity(value: Json): Quantity | null {
  if (typeof value === 'number') return Number.isFinite(value) ? { value, unit: '' } : null;
  if (typeof value === 'string') {
    const match = /^\(?(-?\d+(?:\.\d+)?)\s*([A-Za-z%/]*)\)?$/.exec(value.trim());
    return match ? { value: Number(match[1]), unit: match[2] ?? '' } : null;
  }
  const inner = fieldOf(value, 'value');
  if (inner === undefined) return null;
  const unit = fieldOf(value, 'unit');
  const read = quantity(inner);
  return read && { value: read.value, unit: typeof unit === 'string' ? unit : read.unit };
}

/** The number alone. */
export function amount(value: Json): number | null {
  return quantity(value)?.value ?? null;
}

/** In AMD's tools MB is 2^20 bytes: an MI300X has 196592, which is 192 GiB minus the firmware's share. */
const byteUnits: Record<string, number> = { B: 1, KB: 2 ** 10, MB: 2 ** 20, GB: 2 ** 30 };

/** @param bare default unit of a number */
export function bytes(value: Json, bare: keyof typeof byteUnits = 'MB'): number | null {
  const read = quantity(value);
  if (!read) return null;
  const factor = byteUnits[read.unit.toUpperCase().replace('IB', 'B') || bare];
  return factor === undefined ? null : read.value * factor;
}

export function textOf(value: Json): string | null {
  return typeof value === 'string' && value !== '' && value !== 'N/A' ? value : null;
}
