import { expect, test } from 'vitest';
import { makePlacedRows } from '../facts/derived/placed-rows.js';
import { userDatabase } from '../facts/derived/test-queries.js';
import { importedTogether } from '../facts/trace/test-import.js';
import { importSession } from '../session/archive-import.js';
import { openSession, type Session } from '../session/open.js';
import { testHome } from '../session/test-folder.js';
import { openMetrics } from './openmetrics.js';
import { speedscope } from './speedscope.js';
import type { TextExport } from './exporter.js';

const home = testHome();

async function textOf(format: TextExport, session: Session): Promise<string> {
  const database = await session.connect();
  let all = '';
  for await (const piece of format(session, database, () => {})) all += piece;
  await database.close();
  return all;
}

/** Counts of kernels by stage, in all executions and classes. */
async function kernelsByStage(session: Session): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  const line = /^inferscope_kernel_seconds_count\{.*stage="(\w+)".*\} (\d+)$/gm;
  for (const [, stage, n] of (await textOf(openMetrics, session)).matchAll(line))
    counts[stage!] = (counts[stage!] ?? 0) + Number(n);
  return counts;
}

test('counts kernels in the steps that explain counts them in, also those launched between two marks', async () => {
  const { id } = await importSession('test/fixtures/experts-h200/batched.tgz', home);
  const session = await openSession(id, home);
  const database = await userDatabase(session);
  const rows = await database.query<{ stage: string; n: number; marked: number }>(
    `SELECT coalesce(step_kind, phase) AS stage, count(*) AS n, count_if(stage_id IN (SELECT stage_id FROM stages WHERE phase_id IS NOT NULL)) AS marked
     FROM phase_kernels WHERE coalesce(step_kind, phase) <> 'warmup' GROUP BY ALL`,
  );
  await database.close();
  const decode = rows.find(({ stage }) => stage === 'decode')!;
  expect(decode.n).toBeGreaterThan(decode.marked);
  expect(await kernelsByStage(session)).toEqual(Object.fromEntries(rows.map(({ stage, n }) => [stage, n])));
  const { shared } = JSON.parse(await textOf(speedscope, session)) as {
    shared: { frames: { name: string }[] };
  };
  expect(shared.frames.map(({ name }) => name)).toEqual(expect.arrayContaining(['decode', 'prefill']));
});

test('has every row once in a session of two executions, one with two GPUs', async () => {
  const session = await importedTogether(home, [
    ['nsys-sqlite', 'test/fixtures/below-2h100/torchrun.sqlite'],
    ['kineto', 'test/fixtures/kineto-torch2.11-h200/kineto-tiny.json.gz'],
  ]);
  const database = await session.connect();
  await makePlacedRows(session, database);
  for (const table of ['kernels', 'copies', 'gaps', 'ops']) {
    const [row] = await database.query<{ placed: number; recorded: number }>(
      `SELECT (SELECT count(*) FROM placed_${table}) AS placed, (SELECT count(*) FROM ${table}) AS recorded`,
    );
    expect(row!.recorded, table).toBeGreaterThan(0);
    expect(row!.placed, table).toBe(row!.recorded);
  }
  await database.close();
});
