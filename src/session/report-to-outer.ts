import { appendFileSync } from 'node:fs';
import process from 'node:process';
import type { SessionLineInput } from '../model/record.js';
import { recordVariable } from '../model/outer-run.js';

/**
 * Reports the saved session to the run that this command is part of (`inferscope run -- inferscope bench …`) as a `session` line in its
 * record. Does nothing outside such a run, and never throws.
 */
export function reportToOuterRun(session: { id: string; kind: string }): void {
  const record = process.env[recordVariable];
  if (!record) return;
  const line: SessionLineInput = {
    v: 1,
    type: 'session',
    execution_id: 'run',
    rank: 0,
    pid: process.pid,
    t_ns: Number(process.hrtime.bigint()),
    ...session,
  };
  try {
    appendFileSync(record, `${JSON.stringify(line)}\n`);
  } catch {
    // The session itself is saved.
  }
}
