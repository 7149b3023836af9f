import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { explainSession } from '../../advice/explain/explain.js';
import { analyzeCollectives } from '../../facts/collectives/collectives.js';
import { writeNsysRanks } from '../../record/ranks/test-nsys-ranks.js';
import { type PlantedRun, playRanks } from '../../record/ranks/test-ranks.js';
import { openSession } from '../../session/open.js';
import { testFolder } from '../../session/test-folder.js';
import { runImport } from '../import-run.js';

afterEach(() => vi.unstubAllEnvs());

/** Imports a pipeline of one process that drives all GPUs, a stage each. */
async function importPipeline(process: 'one thread' | 'thread per GPU', planted: Partial<PlantedRun>) {
  const folder = testFolder();
  vi.stubEnv('INFERSCOPE_HOME', join(folder, 'home'));
  const path = join(folder, 'pipeline.parquetdir');
  const size = { seed: 2, ranks: 4, steps: 24, layers: 6, microBatches: 8, ...planted };
  await writeNsysRanks(path, playRanks({ ...size, offsetNs: 0, driftPpm: 0 }), size.ranks, process);
  const options = { tag: [], raw: false, quiet: true };
  const session = await openSession(await runImport([path], options, new AbortController().signal));
  const { job } = (await analyzeCollectives(session)).data;
  const explained = [];
  for (const { rank } of job!.ranks) explained.push((await explainSession(session, { rank })).data);
  return { ranks: job!.ranks, explained };
}

// (p - 1) / (m + p - 1)
const bubble = 3 / 11;

test('a process with a thread per GPU: every rank has the steps of its thread, and its bubbles', async () => {
  const { ranks, explained } = await importPipeline('thread per GPU', {});
  for (const { rank, steps, step_ms, stages_ms } of ranks) {
    expect([rank, steps]).toEqual([rank, 24]);
    expect(stages_ms! / step_ms!).toBeGreaterThan(0.9 * bubble);
  }
  for (const { stages, findings } of explained) {
    expect(findings[0]).toMatchObject({ rule: 'pipeline_bubbles' });
    expect(findings[0]!.at_stake_ms! / stages[0]!.measured_ms.value!).toBeCloseTo(bubble, 1);
    expect(stages[0]!.bars.find(({ id }) => id === 'unattributed')!.share).toBeLessThan(0.01);
  }
}, 120_000);

test('a process with one thread: its steps are those of every rank', async () => {
  const { ranks, explained } = await importPipeline('one thread', {});
  expect(ranks.map(({ rank, steps }) => [rank, steps])).toEqual([0, 1, 2, 3].map((rank) => [rank, 24]));
  const share = (bars: (typeof explained)[number]['stages'][number]['bars'], id: string) =>
    bars.find((bar) => bar.id === id)?.share ?? 0;
  for (const { stages } of explained) {
    // A rank waits in its receives, and after its last micro-batch until the thread starts the next step.
    const waiting = share(stages[0]!.bars, 'exposed_comm.skew') + share(stages[0]!.bars, 'synchronization');
    expect(waiting).toBeCloseTo(bubble, 1);
    expect(share(stages[0]!.bars, 'unattributed')).toBeLessThan(0.01);
  }
}, 120_000);

test('sends and receives between the steps of a thread per GPU belong to the steps of their rank', async () => {
  const { ranks } = await importPipeline('thread per GPU', {
    ranks: 2,
    steps: 12,
    microBatches: 4,
    stepPerMicroBatch: true,
  });
  for (const { steps, step_ms, stages_ms, compute_ms, exposed_ms } of ranks) {
    expect(steps).toBe(48);
    expect(stages_ms! / step_ms!).toBeGreaterThan(0.9 / 5);
    expect(compute_ms! + exposed_ms!).toBeLessThan(step_ms!);
  }
}, 120_000);
