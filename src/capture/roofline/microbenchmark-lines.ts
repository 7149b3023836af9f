import { readFile } from 'node:fs/promises';
import { type MicrobenchmarkLine, microbenchmarkLineSchema } from '../../model/record.js';
import { median } from '../../model/statistics.js';

/** The `microbenchmark` lines of a record file; a line truncated by a killed process is skipped. */
export async function readMicrobenchmarkLines(path: string): Promise<MicrobenchmarkLine[]> {
  const text = await readFile(path, 'utf8').catch(() => '');
  return text
    .split('\n')
    .filter((line) => line.includes('"microbenchmark"'))
    .flatMap((line) => {
      try {
        return microbenchmarkLineSchema.safeParse(JSON.parse(line)).data ?? [];
      } catch {
        return [];
      }
    });
}

/** Median, ns; null if it was not measured. */
export function medianNs({ outcome, samples_ns: samples }: MicrobenchmarkLine): number | null {
  if (outcome !== 'measured' || samples.length === 0) return null;
  return median(samples);
}

/** Operations or bytes per second of the median run; null if it was not measured. */
export function rateOf(line: MicrobenchmarkLine): number | null {
  const ns = medianNs(line);
  return ns === null || ns <= 0 ? null : ((line.flops > 0 ? line.flops : line.bytes) / ns) * 1e9;
}

export function fastestLine(lines: readonly MicrobenchmarkLine[]): MicrobenchmarkLine | null {
  const rate = (line: MicrobenchmarkLine) => rateOf(line) ?? -1;
  return lines.reduce<MicrobenchmarkLine | null>(
    (best, line) => (rateOf(line) !== null && (!best || rate(line) > rate(best)) ? line : best),
    null,
  );
}
