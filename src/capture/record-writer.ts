import { appendFileSync } from 'node:fs';
import process from 'node:process';
import type { RecordLineInput } from '../model/record.js';

/** Names the file that a workload appends its lines to. */
export const recordVariable = 'INFERSCOPE_RECORD';

type Own = 'v' | 'execution_id' | 'rank' | 'pid' | 't_ns';
type Body<L extends RecordLineInput> = L extends RecordLineInput ? Omit<L, Own> & { t_ns?: number } : never;

export interface RecordWriter {
  /** Keeps a line in memory; t_ns is now unless given. */
  add(line: Body<RecordLineInput>): void;
  /** Appends what was kept. Called between timed regions: writing inside one would be measured. */
  flush(): void;
  /** One of the (monotonic, realtime) pairs that tie this recorder's clock to the wall. */
  clock(): void;
}

/** Writes the recording protocol of docs/formats.md (INFERSCOPE_RECORD) to `path`. */
export function recordWriter(path: string, executionId: string, rank = 0): RecordWriter {
  let kept: string[] = [];
  const writer: RecordWriter = {
    add(body) {
      const t_ns = body.t_ns ?? monotonicNs();
      kept.push(JSON.stringify({ v: 1, execution_id: executionId, rank, pid: process.pid, ...body, t_ns }));
    },
    flush() {
      if (kept.length === 0) return;
      appendFileSync(path, `${kept.join('\n')}\n`);
      kept = [];
    },
    clock() {
      writer.add({ type: 'clock', realtime_ns: realtimeNs() });
    },
  };
  return writer;
}

/** CLOCK_MONOTONIC, ns; exact as a double for 104 days of uptime. */
export function monotonicNs(): number {
  return Number(process.hrtime.bigint());
}

/** CLOCK_REALTIME in ns as a decimal string; Node reads it to the microsecond. */
export function realtimeNs(): string {
  const ms = performance.timeOrigin + performance.now();
  return `${BigInt(Math.round(ms * 1000)) * 1000n}`;
}
