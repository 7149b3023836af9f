import type { Execution, Workload } from '../../model/manifest.js';
import type { Row, TableName } from '../../model/tables.js';
import { createSession } from '../../session/create.js';
import type { Home } from '../../session/home.js';
import { openSession, type Session } from '../../session/open.js';
import { summary } from '../../session/test-session.js';
import { tinyWorkload } from './test-tiny.js';

export const ms = 1_000_000;
type Rows = { [T in TableName]?: Row<T>[] };

export const sessionsIn = (home: Home) =>
  async function sessionOf(
    rows: Rows,
    purposes: Record<string, Execution['purpose']>,
    workload: Workload | null = tinyWorkload(),
  ): Promise<Session> {
    const writer = await createSession({ home, label: 'hand', kind: 'run' });
    for (const table of Object.keys(rows) as TableName[]) {
      for (const row of rows[table] ?? []) {
        const capture_id = `${row.execution_id}-record`;
        writer.sink.append(table, {
          capture_id,
          host: 'h',
          pid: 7,
          tid: 7,
          rank: 0,
          ...row,
        } as Row<'stages'>);
      }
    }
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
    const hardware = { gpu_name: 'NVIDIA H200' };
    const { id } = await writer.finish({ ...summary, hardware, workload, executions, captures });
    return openSession(id, home);
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
