import type { Execution } from '../../model/manifest.js';
import type { Row } from '../../model/tables.js';
import type { Session } from '../../session/open.js';
import { testHome } from '../../session/test-folder.js';
import { type Rows, sessionOfRows, summary } from '../../session/test-session.js';

const home = testHome();
export type { Rows };
export const us = 1000;

/** A session of these rows. Defaults: capture `nsys` of execution `profiled`, pid 7, thread 7, rank 0, device 0. */
export function sessionOf(rows: Rows, purposes: Record<string, Execution['purpose']> = {}): Promise<Session> {
  const keys = { execution_id: 'profiled', capture_id: 'nsys', host: 'h', pid: 7, tid: 7, rank: 0 };
  const executions = Object.entries({ profiled: 'profiled' as const, ...purposes }).map(
    ([execution_id, purpose]) => ({
      execution_id,
      purpose,
      command: [],
      exit_code: 0,
      start_ns: null,
      end_ns: null,
    }),
  );
  const captures = executions.map(({ execution_id }) => ({
    ...summary.captures[0]!,
    capture_id: execution_id === 'profiled' ? 'nsys' : `${execution_id}-record`,
    execution_id,
    tool: { name: execution_id === 'profiled' ? 'nsys' : 'record', version: null },
    importer: execution_id === 'profiled' ? 'nsys' : 'record',
  }));
  return sessionOfRows(home, rows, (table) => (table === 'stages' ? keys : { ...keys, device: 0 }), {
    kind: 'import',
    manifest: { executions, captures },
  });
}

export const stage = (
  stage_id: number,
  kind: string,
  from: number,
  to: number,
  more: Row<'stages'> = {},
): Row<'stages'> => ({
  stage_id,
  phase_id: kind === 'other' ? null : stage_id,
  kind,
  raw_name: kind,
  start_ns: from * us,
  end_ns: to * us,
  iteration: 0,
  warmup: kind === 'warmup',
  ...more,
});

let correlation = 0;
/** A kernel, times in µs, launched by a call of 5 µs that by default returned when the kernel started. */
export const kernel = (
  stage_id: number | null,
  from: number,
  durationUs: number,
  more: Row<'kernels'> = {},
): Row<'kernels'> => ({
  stage_id,
  start_ns: from * us,
  dur_ns: durationUs * us,
  exclusive_ns: durationUs * us,
  stream: 1,
  context: 1,
  name: 'k',
  short_name: 'k',
  class: 'gemm',
  correlation: ++correlation,
  api_start_ns: (from - 5) * us,
  api_dur_ns: 5 * us,
  attributed_by: 'api',
  ...more,
});

/** An idle interval with the durations of its parts, µs. */
export const gap = (from: number, parts: Record<string, number>): Row<'gaps'> => {
  const columns = Object.entries(parts).map(([part, durationUs]) => [`${part}_ns`, durationUs * us]);
  const dur = Object.values(parts).reduce((sum, durationUs) => sum + durationUs, 0);
  return { start_ns: from * us, dur_ns: dur * us, cause: 'host', ...Object.fromEntries(columns) };
};
