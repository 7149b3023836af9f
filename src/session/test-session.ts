import type { Row, TableName } from '../model/tables.js';
import { createSession, type SessionSummary } from './create.js';
import type { Home } from './home.js';
import { openSession, type Session } from './open.js';

export type Rows = { [T in TableName]?: Row<T>[] };

export const summary: SessionSummary = {
  title: 'llama-24m float32, onnx CPU, batch 1, 128 → 32',
  status: 'complete',
  started_at: '2026-11-20T22:15:03.000Z',
  ended_at: '2026-11-20T22:15:09.500Z',
  clock_pairs: [{ monotonic_ns: '1000', realtime_ns: '1795212903000000000' }],
  command: ['inferscope', 'profile'],
  workload: null,
  hardware: { cpu_model: 'test CPU', cores: 2 },
  software: { node: 'v20' },
  executions: [
    { execution_id: 'clean', purpose: 'clean', command: ['a'], exit_code: 0, start_ns: 0, end_ns: 1_000_000 },
  ],
  captures: [
    {
      capture_id: 'c0',
      execution_id: 'clean',
      tool: { name: 'onnxruntime', version: '1.30.0' },
      importer: 'ort-trace',
      clock: { name: 'CLOCK_MONOTONIC', resolution_ns: 1, error_bound_ns: 1000 },
    },
  ],
};

/** A session with three operators, one stage and one artifact. */
export async function saveSession(
  home: Home,
  options: { label?: string; kind?: string; name?: string; tags?: string[]; createdAt?: Date } = {},
): Promise<{ id: string; folder: string }> {
  const writer = await createSession({ label: 'llama-24m', kind: 'profile', ...options, home });
  const keys = { execution_id: 'clean', capture_id: 'c0', host: 'h', pid: 7, rank: 0 };
  for (let i = 0; i < 3; i++) {
    writer.sink.append('ops', {
      ...keys,
      op_id: i,
      stage_id: 0,
      name: `op ${i}`,
      start_ns: i * 10,
      dur_ns: 10 - i,
    });
  }
  writer.sink.append('stages', {
    ...keys,
    stage_id: 0,
    kind: 'prefill',
    start_ns: 0,
    end_ns: 30,
    warmup: false,
  });
  await writer.addArtifact(Buffer.from('{"v":1}\n'), {
    kind: 'record',
    captureId: 'c0',
    name: 'record.jsonl',
  });
  return writer.finish(summary);
}

/** Writes a session with these rows and opens it. @param keys default columns of every row */
export async function sessionOfRows(
  home: Home,
  rows: Rows,
  keys: (table: TableName, row: Row<'kernels'>) => Row<'kernels'>,
  options: { kind: string; manifest?: Partial<SessionSummary>; artifacts?: Record<string, unknown> },
): Promise<Session> {
  const writer = await createSession({ home, label: 'tiny', kind: options.kind });
  for (const table of Object.keys(rows) as TableName[])
    for (const row of rows[table] ?? [])
      writer.sink.append(table, { ...keys(table, row as Row<'kernels'>), ...row } as Row<'kernels'>);
  for (const [kind, content] of Object.entries(options.artifacts ?? {}))
    await writer.addArtifact(Buffer.from(JSON.stringify(content)), {
      kind,
      captureId: kind,
      name: `${kind}.json`,
    });
  const { id } = await writer.finish({ ...summary, ...options.manifest });
  return openSession(id, home);
}
