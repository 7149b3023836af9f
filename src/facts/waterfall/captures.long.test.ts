import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { StageWaterfall } from '../../model/documents/explain.js';
import type { Workload } from '../../model/manifest.js';
import type { Session } from '../../session/open.js';
import { testHome } from '../../session/test-folder.js';
import { userDatabase } from '../derived/test-queries.js';
import { traceScope } from '../derived/scope.js';
import { fixture, imported, importedTogether } from '../trace/test-import.js';
import { tinyHead, tinyLinear, fixtureWorkload } from '../utilization/test-tiny.js';
import { sessionWaterfalls } from './session-waterfalls.js';
import { timelineWaterfalls } from './waterfall.js';

const home = testHome();

const waterfallsByCapture = new Map<string, Promise<StageWaterfall[]>>();

/** Imports each capture once per workload. */
function waterfalls(importer: string, path: string, workload: Workload | null): Promise<StageWaterfall[]> {
  const key = `${path} ${workload?.model?.name}`;
  const stages = waterfallsByCapture.get(key) ?? readWaterfalls(importer, path, workload);
  waterfallsByCapture.set(key, stages);
  return stages;
}

async function readWaterfalls(
  importer: string,
  path: string,
  workload: Workload | null,
): Promise<StageWaterfall[]> {
  const session = await imported(home, importer, fixture(path), { workload });
  const database = await session.connect();
  try {
    const scope = await traceScope(database, session.manifest);
    const { stages } = await timelineWaterfalls(session, database, scope);
    // Checked once per kind of stage and capture, because the queries are the slowest part of this file.
    if (/tiny-whole|kineto/.test(path)) await expectQueries(session, stages);
    return stages;
  } finally {
    await database.close();
  }
}

const ms = ({ bars }: StageWaterfall, id: RegExp): number =>
  bars.filter((bar) => id.test(bar.id)).reduce((sum, bar) => sum + bar.ms, 0);

/** Every stage and instance sums to its measured time, and every bar below 0 by more than rounding (1 ns) has a note. */
function expectSums(stages: readonly StageWaterfall[]): void {
  for (const stage of stages) {
    expect(stage.sum_error_share).toBeLessThan(0.001);
    for (const row of stage.rows) {
      const sum = row.bars.reduce((total, bar) => total + bar.ms, 0);
      expect(Math.abs(sum - row.measured_ms)).toBeLessThan(0.001 * row.measured_ms);
    }
    for (const bar of stage.bars) expect(bar.ms > -1e-6 || bar.note !== null, bar.id).toBe(true);
  }
}

/** The query of every bar, run as a user would, yields rows that sum to the bar. */
async function expectQueries(session: Session, stages: readonly StageWaterfall[]): Promise<void> {
  const database = await userDatabase(session);
  for (const { kind, name, bars, measured_ms } of stages) {
    for (const { id, sql, ms: barMs } of bars) {
      if (sql === null) continue;
      const rows = await database.query<{ ms: number }>(sql);
      const sum = rows.reduce((total, row) => total + row.ms, 0);
      expect(Math.abs(sum - barMs), `${kind} ${name ?? ''} ${id}`).toBeLessThan(1e-6 * measured_ms.value!);
    }
  }
  await database.close();
}

const workload = fixtureWorkload({ batch_size: 2, input_len: 32 });

test.each([
  [
    'nsys-sqlite',
    'nsys-2025.3.1-h200/tiny-nsys.sqlite',
    ['decode', 'prefill', 'request', 'copies', 'two streams', 'process wide', 'sampling'],
  ],
  [
    'nsys-sqlite',
    'nsys-2025.3.1-h200/tiny-whole.sqlite',
    ['decode', 'load', 'prefill', 'warmup', 'request', 'sampling'],
  ],
  ['nsys-sqlite', 'nsys-2025.3.1-h200/tiny-graph.sqlite', ['decode']],
  ['kineto', 'kineto-torch2.11-h200/kineto-tiny.json.gz', ['decode', 'prefill', 'request', 'sampling']],
])('%s %s: bars sum to the measured time', async (importer, path, kinds) => {
  const stages = await waterfalls(importer, path, workload);
  expect(stages.map(({ kind, name }) => name ?? kind)).toEqual(kinds);
  expectSums(stages);
  const [decode] = stages;
  // A step reads every float16 weight once at the data sheet's 4.8 TB/s. KV cache and activations add little.
  const weightsMs = ((tinyLinear + tinyHead) * 2) / 4.8e9;
  expect(decode!.roofline_ms.value! / weightsMs).toBeGreaterThan(1);
  expect(decode!.roofline_ms.value! / weightsMs).toBeLessThan(1.05);
  expect(ms(decode!, /^unattributed$/)).toBeLessThan(0.001 * decode!.measured_ms.value!);
});

test('rooflines of all kinds of stages equal the hand calculation', async () => {
  const stages = await waterfalls('nsys-sqlite', 'nsys-2025.3.1-h200/tiny-whole.sqlite', workload);
  const roof = (kind: string) => stages.find((stage) => stage.kind === kind)!.roofline_ms.value!;
  // One prefill and two decode steps, each waiting for the previous token.
  expect(roof('request')).toBeCloseTo(roof('prefill') + 2 * roof('decode'), 9);
  // The warm-up is one such request.
  expect(roof('warmup')).toBeCloseTo(roof('request'), 6);
  // Float16 logits of 2 sequences over 4096 tokens are read once and two token ids written, at 4.8 TB/s.
  expect(roof('sampling')).toBeCloseTo((2 * (4096 * 2 + 8)) / 4.8e9, 12);
  // All weights, including the embedding and nine norms, go once over PCIe 5.0 ×16: 63 GB/s.
  const weights = 2 * (tinyLinear + 2 * tinyHead + 9 * 512);
  expect(roof('load')).toBeCloseTo(weights / 63e6, 9);
});

test('a whole CUDA graph is one bar that contains the kernels inside it', async () => {
  const stages = await waterfalls('nsys-sqlite', 'nsys-2025.3.1-h200/tiny-graph-opaque.sqlite', workload);
  expectSums(stages);
  const graph = stages[0]!.bars.find(({ id }) => id === 'inefficiency.graph')!;
  expect(graph).toMatchObject({
    confidence: 'low',
    better_capture: expect.stringContaining('nsys') as string,
  });
  expect(stages[0]!.bars.some(({ id }) => /gemm|norm|attention/.test(id))).toBe(false);
  expect(graph.ms).toBeGreaterThan(0);
});

test('operators split host time into framework and time between operators', async () => {
  const [decode] = await waterfalls('kineto', 'kineto-torch2.11-h200/kineto-tiny.json.gz', null);
  const ids = decode!.bars.map(({ id }) => id);
  expect(ids).toContain('host.framework');
  expect(ids).toContain('host.between_operators');
  expect(ids).not.toContain('host.program');
  const framework = decode!.bars.find(({ id }) => id === 'host.framework')!;
  expect(framework.parts[0]!.label).toMatch(/^aten::/);
});

test('without a GPU, operators are the kernels, with the self time that torch reports', async () => {
  const oracle = JSON.parse(
    readFileSync(fixture('kineto-torch2.11-cpu/layer.key_averages.json'), 'utf8'),
  ) as { key: string; self_cpu_time_us: number }[];
  const session = await imported(home, 'kineto', fixture('kineto-torch2.11-cpu/layer.json.gz'));
  const database = await session.connect();
  const { stages } = await sessionWaterfalls(session, database);
  await database.close();
  expect(stages.map(({ kind, source }) => [kind, source])).toEqual(
    ['decode', 'prefill', 'request'].map((kind) => [kind, 'operators']),
  );
  expectSums(stages);
  await expectQueries(session, stages);
  // All of them ran inside the single request.
  const selfUs = oracle
    .filter(({ key }) => ['aten::bmm', 'aten::mm', 'aten::addmm'].includes(key))
    .reduce((sum, row) => sum + row.self_cpu_time_us, 0);
  expect(ms(stages[2]!, /^kernels\.gemm$/)).toBeCloseTo(selfUs / 1e3, 1);
});

test('splits a 1.1 B Llama in eager mode at batch 1 on an H200', async () => {
  const config = {
    model_type: 'llama',
    vocab_size: 32000,
    hidden_size: 2048,
    intermediate_size: 5632,
    num_hidden_layers: 22,
    num_attention_heads: 32,
    num_key_value_heads: 4,
    max_position_embeddings: 2048,
    tie_word_embeddings: false,
  };
  const model = { ...workload.model!, name: 'llama-1.1b', config };
  const stages = await waterfalls('nsys-parquetdir', 'nsys-2025.3.1-h200/tiny-llm-b1.parquetdir', {
    ...workload,
    model,
    batch_size: 1,
    input_len: 128,
  });
  expectSums(stages);
  const [decode] = stages;
  // A step reads 1.035 G parameters (all but the embedding): 2.07 GB at 4.8 TB/s take 0.43 ms, at the measured H200
  // bandwidth 0.5 ms.
  expect(decode!.roofline_ms.value!).toBeCloseTo(0.432, 2);
  const kernels = ms(decode!, /^(roofline|serial|inefficiency|nonessential)/);
  expect(kernels).toBeGreaterThan(2.1);
  expect(kernels).toBeLessThan(2.3);
  const waiting = ms(decode!, /^(launch_|host|synchronization)/);
  expect(waiting / decode!.measured_ms.value!).toBeGreaterThan(0.9);
  expect((kernels + waiting) / decode!.measured_ms.value!).toBeGreaterThan(0.999);
  expect(decode!.bars.find(({ id }) => id === 'launch_overhead')!.count).toBeGreaterThan(880);
});

test('a second capture keeps the roofline of the first, or says why it cannot', async () => {
  const kineto = ['kineto', fixture('kineto-torch2.11-h200/kineto-tiny.json.gz')] as const;
  const nsys = ['nsys-sqlite', fixture('nsys-2025.3.1-h200/tiny-nsys.sqlite')] as const;
  // Only the shapes of PyTorch's operators give sizes.
  const withoutSizes = { workload: fixtureWorkload({ batch_size: null, input_len: null }) };
  const rooflines = async (files: Parameters<typeof importedTogether>[1]) => {
    const session = await importedTogether(testHome(), files, withoutSizes);
    const database = await session.connect();
    try {
      const scope = await traceScope(database, session.manifest);
      const { stages } = await timelineWaterfalls(session, database, scope);
      const stage = (kind: string) => stages.find((stage) => stage.kind === kind)!;
      return {
        tool: scope.source.attribution.capture_id,
        prefill: stage('prefill'),
        decode: stage('decode'),
      };
    } finally {
      await database.close();
    }
  };
  const before = await rooflines([kineto]);
  const after = await rooflines([kineto, nsys]);
  expect([before.tool, after.tool]).toEqual(['kineto', 'nsys-sqlite']);
  expect(before.decode.roofline_ms.value).toBeGreaterThan(0);
  // Each has one prefill, so the sizes of one capture apply to the other.
  expect(ms(before.prefill, /^roofline$/)).toBeGreaterThan(0);
  expect(ms(after.prefill, /^roofline$/)).toBeCloseTo(ms(before.prefill, /^roofline$/), 12);
  // One capture has three decode steps, the other four.
  expect(after.decode.roofline_ms).toMatchObject({ value: null, reason: { code: 'other_step_count' } });
});
