import { expect, test } from 'vitest';
import { importSession } from '../../session/archive-import.js';
import { openSession } from '../../session/open.js';
import { testHome } from '../../session/test-folder.js';
import { explainSession } from '../explain/explain.js';

testHome();

/** Fault and twin without a profiler, ms per decode step (timings.json); the device hides the host in the fault. */
const gainMs = 7.75 - 4.43;

test('H200: the calls of the clean execution say how far the host limits a gain', async () => {
  const archive = 'test/fixtures/diagnosis-stock/sg_17_quantized-fault.tgz';
  const session = await openSession((await importSession(archive)).id);
  const { findings } = (await explainSession(session)).data;
  const casts = findings.find((one) => one.rule === 'casts_and_layout_copies' && one.stage === 'decode');
  // nsys makes a call of the model 2.3 times as long.
  expect(Math.abs(casts!.gain!.expected_ms / gainMs - 1)).toBeLessThan(0.25);
});
