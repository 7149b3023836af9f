import { appendFileSync } from 'node:fs';
import process from 'node:process';
import type { RecordLineInput } from '../model/record.js';

type Own = 'v' | 'execution_id' | 'rank' | 'pid' | 't_ns';
export type RecordBody<L extends RecordLineInput = RecordLineInput> = L extends RecordLineInput
  ? Omit<L, Own> & { t_ns: number }
  : never;

/**
 * Appends lines of the recording protocol for an engine that has no process of its own to write them: what it measured
 * survives a crash of this one. Called between timed regions: writing inside one would be measured.
 */
export function appendRecord(path: string, executionId: string, lines: readonly RecordBody[]): void {
  if (lines.length === 0) return;
  const common = { v: 1, execution_id: executionId, rank: 0, pid: process.pid };
  appendFileSync(path, lines.map((line) => `${JSON.stringify({ ...common, ...line })}\n`).join(''));
}
