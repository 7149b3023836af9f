import { appendFileSync } from 'node:fs';
import process from 'node:process';
import type { RecordLineInput } from '../model/record.js';

type CommonField = 'v' | 'execution_id' | 'rank' | 'pid' | 't_ns';
export type RecordBody<L extends RecordLineInput = RecordLineInput> = L extends RecordLineInput
  ? Omit<L, CommonField> & { t_ns: number }
  : never;

/**
 * Appends lines of the recording protocol (docs/reference/recording-protocol.md), so that measurements survive a crash
 * of this process. Call it between timed regions: writing inside one would be measured.
 */
export function appendRecord(
  path: string,
  executionId: string,
  lines: readonly RecordBody[],
  rank = 0,
): void {
  if (lines.length === 0) return;
  const common = { v: 1, execution_id: executionId, rank, pid: process.pid };
  appendFileSync(path, lines.map((line) => `${JSON.stringify({ ...common, ...line })}\n`).join(''));
}
