import { expect, test } from 'vitest';
import { explainSession } from '../../advice/explain/explain.js';
import { classOfBar } from '../../model/bars.js';
import { testHome } from '../../session/test-folder.js';
import { traceScope } from '../derived/scope.js';
import { profileRows } from '../test-rows.js';
import { sessionOf } from '../test-session.js';
import { operatorWaterfalls } from './operator-waterfalls.js';

test('the operators of a bar sum to it, although a part of their time is at the roofline', async () => {
  const { stages } = (await explainSession(await sessionOf(testHome(), profileRows()))).data;
  const bars = stages
    .flatMap((stage) => stage.bars)
    .filter(({ id, parts }) => classOfBar(id) !== null && parts.length > 0);
  expect(bars.length).toBeGreaterThan(2);
  for (const { id, ms, parts } of bars)
    expect(
      parts.reduce((sum, part) => sum + part.ms, 0),
      id,
    ).toBeCloseTo(ms, 9);
});

test('operators that take longer under the profiler than the step without it are scaled: no bar exceeds the step', async () => {
  const rows = profileRows();
  const ops = rows.ops!.map((op) => ({ ...op, dur_ns: 3 * op.dur_ns! }));
  const session = await sessionOf(testHome(), { ...rows, ops });
  const database = await session.connect();
  const scope = await traceScope(database, session.manifest);
  const { stages } = await operatorWaterfalls(session, database, scope);
  await database.close();
  const decode = stages.find(({ kind }) => kind === 'decode')!;
  const clean = decode.clean_ms.value!;
  const bars = decode.bars.filter(({ id }) => id !== 'profiler_overhead');
  expect(bars.reduce((sum, { ms }) => sum + ms, 0)).toBeCloseTo(clean, 9);
  for (const { id, ms } of bars) expect([id, ms <= clean]).toEqual([id, true]);
  expect(bars.find(({ id }) => id === 'unattributed')!.ms).toBeCloseTo(0, 9);
});
