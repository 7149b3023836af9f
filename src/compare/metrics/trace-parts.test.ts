import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { homeFolders } from '../../session/home.js';
import { traceSide } from '../sessions/trace-side.js';
import { fixture, imported } from '../../facts/trace/test-import.js';
import { checkBaseline } from './check.js';
import { sampleSessions } from './sample.js';

const root = mkdtempSync(join(tmpdir(), 'inferscope-baseline-trace-'));
afterAll(() => rmSync(root, { recursive: true }));

test('a timeline: phases under the profiler have separate names, and one process gives no verdict', async () => {
  const session = await imported(
    homeFolders({ INFERSCOPE_HOME: root }),
    'nsys-sqlite',
    fixture('nsys-2025.3.1-h200/tiny-nsys.sqlite'),
  );
  const sampled = await sampleSessions([session]);
  const decode = sampled.metrics.find(({ id }) => id === 'decode_step_profiled_ms')!;
  const { value } = (await traceSide(session)).stages.find(({ phase }) => phase === 'decode')!;
  expect(decode.value).toBe(value.duration_ms.value);
  expect(decode).toMatchObject({ basis: 'interval', interval: { n: value.instances, over_launches: false } });
  const baseline = { name: 'main', set_at: '2026-11-21T00:00:00.000Z', ...sampled };
  const options = { tolerance: 0.05, withinProcess: false };
  expect(() => checkBaseline(baseline, sampled, options)).toThrow('is part of the baseline main');
  const found = checkBaseline({ ...baseline, sessions: [] }, sampled, options);
  expect(found.result).toBe('undecided');
  expect(found.comparisons.find(({ id }) => id === decode.id)!.verdict).toBe('within_process');
});
