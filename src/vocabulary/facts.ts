interface Fact {
  name: string;
  value: string | { n: number; unit: string; digits?: number };
}

/** Suffixes of the ids of numbers, longer ones first. */
const units: readonly [ending: string, value: (n: number) => Exclude<Fact['value'], string>][] = [
  ['_bytes_per_s', (n) => ({ n, unit: 'B/s' })],
  ['_bytes', (n) => ({ n, unit: 'B' })],
  ['_hz', (n) => ({ n: n / 1e6, unit: 'MHz', digits: 4 })],
];
const spellings: Record<string, string> = { nvidia: 'NVIDIA', duckdb: 'DuckDB' };

/** A fact of the manifest: "l3_bytes", "33554432" is "L3", 33554432 B; "cpu_avx2", "true" is "CPU AVX2", "yes". */
export function factOf({ id, value }: { id: string; value: string }): Fact {
  const unit = /^\d+$/.test(value) ? units.find(([ending]) => id.endsWith(ending)) : undefined;
  const words = (unit ? id.slice(0, -unit[0].length) : id).replaceAll('_', ' ');
  const name = words.replaceAll(
    /\b(?:cpu|gpu|os|sm|numa|l\d\w?|avx\w*|vnni|amx|neon|bf16|cuda|cupti|nvidia|duckdb)\b/gi,
    (word) => spellings[word.toLowerCase()] ?? word.toUpperCase(),
  );
  if (unit) return { name, value: unit[1](Number(value)) };
  if (value === 'true' || value === 'false') return { name, value: value === 'true' ? 'yes' : 'no' };
  return { name, value };
}
