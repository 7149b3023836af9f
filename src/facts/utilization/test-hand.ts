import type { Execution, Workload } from '../../model/manifest.js';
import type { Row } from '../../model/tables.js';
import type { Home } from '../../session/home.js';
import type { Session } from '../../session/open.js';
import { type Rows, sessionOfRows, summary } from '../../session/test-session.js';
import { fixtureWorkload } from './test-tiny.js';

export const ms = 1_000_000;

export const sessionsIn =
  (home: Home) =>
  (
    rows: Rows,
    purposes: Record<string, Execution['purpose']>,
    workload: Workload | null = fixtureWorkload(),
  ): Promise<Session> => {
    const executions = Object.entries(purposes).map(([execution_id, purpose]) => ({
      ...summary.executions[0]!,
      execution_id,
      purpose,
    }));
    const captures = executions.map(({ execution_id }) => ({
      ...summary.captures[0]!,
      capture_id: `${execution_id}-record`,
      execution_id,
    }));
    const keys = { host: 'h', pid: 7, tid: 7, rank: 0 };
    return sessionOfRows(
      home,
      rows,
      (_, { execution_id }) => ({ ...keys, capture_id: `${execution_id}-record` }),
      { kind: 'run', manifest: { hardware: { gpu_name: 'NVIDIA H200' }, workload, executions, captures } },
    );
  };

let stageId = 0;
export const step = (
  execution_id: string,
  kind: string,
  from: number,
  to: number,
  more: Row<'stages'> = {},
): Row<'stages'> => ({
  execution_id,
  stage_id: ++stageId,
  kind,
  start_ns: from * ms,
  end_ns: to * ms,
  iteration: 0,
  warmup: false,
  ...more,
});
