import { readFile, stat } from 'node:fs/promises';
import type { KernelCase, CaseOutcome } from '../../model/kernels.js';
import { recordWriter } from '../record-writer.js';
import { monotonicNs } from '../../model/clock.js';

/** Bytes of a record so far; 0 before it exists. */
export async function recordSize(path: string): Promise<number> {
  return stat(path).then(
    ({ size }) => size,
    () => 0,
  );
}

/** Names of the cases with a line after the first `from` bytes of a record (those belong to earlier orders). */
export async function recordedCases(path: string, from: number): Promise<Set<string>> {
  const names = new Set<string>();
  const bytes = await readFile(path).catch(() => Buffer.alloc(0));
  for (const text of bytes.subarray(from).toString('utf8').split('\n')) {
    if (!text.includes('"microbenchmark"')) continue;
    try {
      const line = JSON.parse(text) as Record<string, unknown>;
      if (line['type'] === 'microbenchmark') names.add(String(line['case']));
    } catch {
      // Truncated when its process exited: not recorded.
    }
  }
  return names;
}

/** Writes lines for cases that no process could record itself. */
export function recordUnmeasured(
  { path, execution_id }: { path: string; execution_id: string },
  cases: readonly KernelCase[],
  outcome: Exclude<CaseOutcome, 'measured'>,
  text: string,
): void {
  const record = recordWriter(path, execution_id);
  for (const kernelCase of cases) {
    const now = monotonicNs();
    record.add({
      type: 'microbenchmark',
      ...kernelCase,
      outcome,
      text,
      t_ns: now,
      end_ns: now,
      samples_ns: [],
      method: 'host',
      per_sample: 1,
    });
  }
  record.flush();
}
