import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { explainSession } from '../../advice/explain/explain.js';
import type { RecordLineInput } from '../../model/record.js';
import { testHome } from '../../session/test-folder.js';
import { analyzeCaptures } from '../captures.js';
import { tinyWorkload } from '../test-session.js';
import { fixture, imported, importedTogether } from '../trace/test-import.js';

const keys = { v: 1 as const, execution_id: 'clean', rank: 0, pid: 1 };
const nsPerMs = 1e6;

/** The host finishes a step after 0.1 ms and runs ahead. The device takes 2 ms, and 0.5 ms pass until the next step. */
function step(
  number: number,
  more: Partial<Extract<RecordLineInput, { type: 'stage' }>> = {},
): RecordLineInput {
  const t_ns = 1e9 + number * 0.2 * nsPerMs;
  return {
    ...keys,
    type: 'stage',
    t_ns,
    kind: 'decode',
    name: `inferscope:decode:0:${number}`,
    end_ns: t_ns + 0.1 * nsPerMs,
    iteration: 0,
    step: number,
    batch_size: 1,
    new_tokens: 1,
    context_tokens_sum: 10 + number,
    warmup: false,
    marked_by: 'hooks',
    device_start_ns: 1e9 + number * 2.5 * nsPerMs,
    device_dur_ns: 2 * nsPerMs,
    ...more,
  };
}

function sessionOfLines(lines: RecordLineInput[]) {
  const home = testHome();
  const path = join(home.root, 'record.jsonl');
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  return imported(home, 'inferscope-record', path, { workload: tinyWorkload({ device: 'cuda' }) });
}

test('steps recorded without a profiler give summary and waterfall, timed on the device', async () => {
  const session = await sessionOfLines([step(0, { first_of_shape: true }), step(1), step(2), step(3)]);
  expect(session.manifest.subjects).toContain('steps');
  const { utilization } = await analyzeCaptures(session);
  const [decode] = utilization!.data.stages;
  // Twice 2.5 ms from start to start, and 2 ms for the last step.
  expect(decode!.time_ms).toMatchObject({ value: (2.5 + 2.5 + 2) / 3, n: 3 });
  const { data } = await explainSession(session);
  const [stage] = data.stages;
  expect(stage).toMatchObject({ kind: 'decode', source: 'record', clock: 'device', instances: 3 });
  expect(stage!.measured_ms.value).toBe(decode!.time_ms.value);
  expect(stage!.bars.reduce((sum, { ms }) => sum + ms, 0)).toBeCloseTo(7 / 3, 6);
  // The session has no name of a GPU, so no peaks.
  expect(stage!.bars.map(({ id, note }) => [id, note])).toEqual([
    ['unattributed', 'the whole time, because the roofline is not known; its causes are in a timeline'],
  ]);
});

test('ncu counters next to recorded steps do not change the steps', async () => {
  const home = testHome();
  const path = join(home.root, 'record.jsonl');
  writeFileSync(
    path,
    [step(0, { first_of_shape: true }), step(1), step(2)].map((line) => `${JSON.stringify(line)}\n`).join(''),
  );
  const session = await importedTogether(
    home,
    [
      ['inferscope-record', path],
      ['ncu-csv', fixture('ncu-2025.3.1-h200/ncu-tiny.raw.csv')],
    ],
    { workload: tinyWorkload({ device: 'cuda' }) },
  );
  const { utilization, counters } = await analyzeCaptures(session);
  expect(utilization!.data.stages).toHaveLength(1);
  expect(counters!.data.kernels.length).toBeGreaterThan(0);
  const { data } = await explainSession(session);
  expect(data.stages[0]).toMatchObject({ kind: 'decode', source: 'record', execution_id: 'profiled' });
});

test('times steps on the host without device events, and does not summarize first calls', async () => {
  const onHost = { device_start_ns: null, device_dur_ns: null };
  const session = await sessionOfLines([step(0, onHost), step(1, onHost)]);
  const { data } = await explainSession(session);
  expect(data.stages[0]).toMatchObject({ clock: 'host' });
  // 0.2 ms from start to start, then 0.1 ms for the last call.
  expect(data.stages[0]!.measured_ms.value).toBeCloseTo(0.15, 6);
  const firstCallsOnly = await sessionOfLines([step(0, { warmup: true })]);
  expect((await analyzeCaptures(firstCallsOnly)).utilization).toBeNull();
  expect((await explainSession(firstCallsOnly)).data.without_waterfall[0]!.reason).toContain('first calls');
});

test('calls of a module without tokens are steps of unknown kind, timed on the device, without a roofline', async () => {
  const calls = Array.from({ length: 4 }, (_, number) =>
    step(number, {
      kind: 'other',
      name: `inferscope:other:${number}:0`,
      iteration: number,
      step: 0,
      batch_size: null,
      new_tokens: null,
      context_tokens_sum: null,
    }),
  );
  const { stages } = (await explainSession(await sessionOfLines(calls))).data;
  expect(stages.map(({ kind, instances, measured_ms: ms }) => [kind, instances, ms.value])).toEqual([
    ['other', 4, 2],
  ]);
  expect(stages[0]!.roofline_ms.value).toBeNull();
});
