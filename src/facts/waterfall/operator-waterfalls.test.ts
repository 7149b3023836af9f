import { expect, test } from 'vitest';
import { explainSession } from '../../advice/explain/explain.js';
import { classOfBar } from '../../model/bars.js';
import { testHome } from '../../session/test-folder.js';
import { profileRows } from '../test-rows.js';
import { sessionOf } from '../test-session.js';

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
