import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { KernelCase, CaseOutcome } from '../../model/kernels.js';
import { monotonicNs, recordWriter } from '../record-writer.js';

/** Names of the cases that a record has a line of. */
export async function recordedCases(path: string): Promise<Set<string>> {
  const names = new Set<string>();
  if (!existsSync(path)) return names;
  for (const text of (await readFile(path, 'utf8')).split('\n')) {
    if (!text.includes('"microbenchmark"')) continue;
    try {
      const line = JSON.parse(text) as Record<string, unknown>;
      if (line['type'] === 'microbenchmark') names.add(String(line['case']));
    } catch {
      // Cut off by the end of its process: not recorded.
    }
  }
  return names;
}

/** Lines of cases that no process could record itself. */
export function recordUnmeasured(
  { path, execution_id }: { path: string; execution_id: string },
  cases: readonly KernelCase[],
  outcome: Extract<CaseOutcome, 'failed' | 'stopped'>,
  text: string,
): void {
  const record = recordWriter(path, execution_id);
  for (const one of cases) {
    const now = monotonicNs();
    record.add({
      type: 'microbenchmark',
      ...one,
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
