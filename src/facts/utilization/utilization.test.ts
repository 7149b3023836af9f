import { describe, expect, test } from 'vitest';
import type { Figure } from '../../model/figure.js';
import { traceVersion } from '../../model/documents/trace.js';
import { utilizationDocumentSchema } from '../../model/documents/utilization.js';
import type { Row } from '../../model/tables.js';
import { testHome } from '../../session/test-folder.js';
import { fixture, imported } from '../trace/test-import.js';
import { analyzeTrace } from '../trace/trace.js';
import { tinyAttention, fixtureConfig, tinyHead, tinyLinear, fixtureWorkload } from './test-tiny.js';
import { ms, sessionsIn, step } from './test-hand.js';
import type { Context } from '../../model/context.js';
import { giveContext } from '../../session/edit.js';
import { importSession } from '../../session/archive-import.js';
import { openFolder, openSession, type Session } from '../../session/open.js';
import { analyzeUtilization } from './utilization.js';

const home = testHome();
const tiny = { name: 'tiny', config: fixtureConfig };
/** H200, NVIDIA's data sheet. */
const peak = 989e12;
const bandwidth = 4.8e12;

/** The session, opened again after its user stated what ran. */
async function withContext(session: Session, context: Context): Promise<Session> {
  await giveContext(session, context);
  return openFolder(session);
}

const valueOf = (figure: Figure): number => {
  if (figure.value === null) throw new Error(figure.reason.text);
  return figure.value;
};
const reasonOf = (figure: Figure) => (figure.value === null ? figure.reason.code : null);

describe('a torch trace of the tiny Llama on an H200, with sizes and dtype from its operators', () => {
  const analyzed = imported(home, 'kineto', fixture('kineto-torch2.11-h200/kineto-tiny.json.gz')).then(
    async (session) => analyzeUtilization(await withContext(session, { model: tiny })),
  );
  const necessary = 2 * 64 * tinyLinear + 2 * tinyHead + tinyAttention * ((64 * 65) / 2);

  test("warns of config keys that the model's family does not read", async () => {
    const session = await imported(home, 'kineto', fixture('kineto-torch2.11-h200/kineto-tiny.json.gz'));
    const model = { ...tiny, config: { ...tiny.config, num_local_experts: 8 } };
    const { issues } = await analyzeUtilization(await withContext(session, { model }));
    expect(issues[0]).toMatchObject({ code: 'config_keys_unread' });
    expect((await analyzed).issues.map(({ code }) => code)).not.toContain('config_keys_unread');
  });

  test('matches its schema and names the source of each figure', async () => {
    const document = await analyzed;
    expect(utilizationDocumentSchema.parse(document)).toEqual(document);
    const { model, device } = document.data;
    expect(model).toEqual({
      name: 'tiny',
      dtype: 'float16',
      from: 'given by you; dtype: most of the GEMM time',
    });
    expect(device).toEqual({ name: 'NVIDIA H200', kind: 'gpu', devices: 1 });
  });

  test('prefill: 64 tokens, causal attention, logits of one token', async () => {
    const [prefill] = (await analyzed).data.stages;
    expect(prefill).toMatchObject({ kind: 'prefill', batch_size: 1, new_tokens: 64, steps: 1 });
    expect(valueOf(prefill!.flops)).toBe(necessary);
    expect(necessary).toBe(1_464_074_240);
    // The range of the trace: 0.519 µs to 6255.209 µs.
    const seconds = (6_255_209 - 519) / 1e9;
    expect(valueOf(prefill!.time_ms)).toBeCloseTo(1e3 * seconds, 9);
    expect(valueOf(prefill!.mfu) / (necessary / seconds / peak)).toBeCloseTo(1, 12);
    expect(valueOf(prefill!.mbu) / (valueOf(prefill!.bytes) / seconds / bandwidth)).toBeCloseTo(1, 12);
    expect(prefill!.bound).toBe('memory');
    expect(reasonOf(prefill!.roof_share)).toBe('no_roofline');
  });

  test('executed work: the program computes logits of all 64 tokens, and rotary as a GEMM', async () => {
    const { executed, time_ms } = (await analyzed).data.stages[0]!;
    // linear layers and lm_head for 64 tokens; bmm (32 × 1) · (1 × 64)
    const gemms = 2 * 64 * (tinyLinear + tinyHead) + 2 * 32 * 64;
    expect(executed.source).toBe('operators');
    expect(valueOf(executed.gemm_flops)).toBe(gemms);
    expect(executed.gemm_time_covered).toBe(1);
    const attention = tinyAttention * ((64 * 65) / 2);
    expect(valueOf(executed.attention_flops)).toBe(attention);
    expect(valueOf(executed.over_necessary)).toBeCloseTo((gemms + attention) / necessary, 12);
    expect(executed.text).toContain('1.18× the necessary FLOPs: logits of every prompt token');
    const seconds = valueOf(time_ms) / 1e3;
    // The rotary GEMM is in float32, with a peak of 67 TFLOP/s.
    const atPeak = (gemms - 4096 + attention) / peak + 4096 / 67e12;
    expect(valueOf(executed.mfu) / (atPeak / seconds)).toBeCloseTo(1, 12);
  });

  test('decode steps read a cache that grows by one token', async () => {
    const { stages, steps } = (await analyzed).data;
    const decode = stages[1]!;
    expect(steps[1]!.map(({ step_index, context_tokens_sum }) => [step_index, context_tokens_sum])).toEqual([
      [0, 65],
      [1, 66],
      [2, 67],
    ]);
    expect(steps[1]!.map(({ flops }) => flops)).toEqual(
      [65, 66, 67].map((keys) => 2 * (tinyLinear + tinyHead) + tinyAttention * keys),
    );
    expect(valueOf(decode.flops)).toBe(2 * (tinyLinear + tinyHead) + tinyAttention * 66);
    // Weights once in float16, and 2 × 4 layers × 2 heads × 64 cached values per token, little else.
    const minBytes = 2 * (tinyLinear + tinyHead) + 65 * 2 * 4 * 2 * 64 * 2;
    expect(valueOf(decode.bytes) / minBytes).toBeGreaterThan(1);
    expect(valueOf(decode.bytes) / minBytes).toBeLessThan(1.02);
    expect(decode.executed.text).toBe('the program computes the necessary FLOPs (1.00×)');
  });
});

describe('an nsys capture without sizes', () => {
  const session = imported(home, 'nsys-sqlite', fixture('nsys-2025.3.1-h200/tiny-nsys.sqlite'), {
    workload: fixtureWorkload(),
  });

  test('without sizes the times are known, and the reason for each missing figure', async () => {
    const { stages } = (await analyzeUtilization(await session)).data;
    expect(stages.map(({ kind, steps }) => [kind, steps])).toEqual([
      ['prefill', 1],
      ['decode', 4],
    ]);
    for (const { mfu, mbu, executed } of stages) {
      expect([reasonOf(mfu), reasonOf(mbu)]).toEqual(['unknown_sizes', 'unknown_sizes']);
      expect(reasonOf(executed.mfu)).toBe('no_gemm_shapes');
    }
  });

  test("with the run's sizes the figures equal those of the torch trace of the same program", async () => {
    const { stages, steps } = (
      await analyzeUtilization(await withContext(await session, { batch_size: 1, input_len: 64 }))
    ).data;
    expect(valueOf(stages[0]!.flops)).toBe(1_464_074_240);
    expect(steps[1]!.map(({ context_tokens_sum }) => context_tokens_sum)).toEqual([65, 66, 67, 68]);
    expect(stages[0]!.sizes_from).toBe('the sizes given');
    // NVTX range of the prefill: 9 625 849 to 13 693 445 ns.
    expect(valueOf(stages[0]!.mfu) / (1_464_074_240 / 4_067_596e-9 / peak)).toBeCloseTo(1, 9);
  });

  test('the trace document has the same figures', async () => {
    const traced = await imported(home, 'nsys-sqlite', fixture('nsys-2025.3.1-h200/tiny-nsys.sqlite'), {
      workload: fixtureWorkload({ batch_size: 1, input_len: 64 }),
    });
    const trace = await analyzeTrace(traced);
    const { stages, model, device } = (await analyzeUtilization(traced)).data;
    expect(trace.data.utilization).toEqual({ stages, model, device });
    expect(trace.schema).toBe(`inferscope/trace/${traceVersion}`);
  });
});

const sessionOf = sessionsIn(home);
const sizes = (batch: number, tokens: number, context: number) => ({
  batch_size: batch,
  new_tokens: tokens,
  context_tokens_sum: context,
});

describe('steps recorded without a profiler', () => {
  test('a decode step lasts to the next one, and the interval is over processes', async () => {
    const steps = [7, 8].flatMap((pid) => [
      step('clean', 'prefill', 0, 10, { pid, ...sizes(2, 256, 256) }),
      step('clean', 'decode', 10, 12, { pid, step_index: 0, ...sizes(2, 2, 258) }),
      // Steps of 4 ms, in the second process 3 ms. The last step ends with its range.
      step('clean', 'decode', pid === 7 ? 14 : 13, 16, { pid, step_index: 1, ...sizes(2, 2, 260) }),
    ]);
    const { data } = await analyzeUtilization(await sessionOf({ stages: steps }, { clean: 'clean' }));
    const [prefill, decode] = data.stages;
    expect(data.steps[1]!.map(({ wall_ns }) => wall_ns / ms)).toEqual([4, 2, 3, 3]);
    expect(decode!.time_ms).toMatchObject({ value: 3, n: 4 });
    // 2 sequences of 128 tokens.
    const flops = 2 * 256 * tinyLinear + 2 * 2 * tinyHead + 2 * tinyAttention * ((128 * 129) / 2);
    expect(valueOf(prefill!.flops)).toBe(flops);
    expect(valueOf(prefill!.mfu)).toBeCloseTo(flops / 0.01 / peak, 12);
    // 4 tokens in 3 ms for two sequences.
    expect(valueOf(decode!.tokens_per_s)).toBeCloseTo(2 / 0.003, 6);
    expect(valueOf(decode!.flops)).toBe(2 * 2 * (tinyLinear + tinyHead) + tinyAttention * 259);
  });

  test('each batch size is a stage; mixed steps and parts of different prompts say why they have no figures', async () => {
    const stages = [
      step('clean', 'prefill', 0, 5, sizes(1, 128, 128)),
      step('clean', 'prefill', 10, 15, { iteration: 1, ...sizes(4, 512, 512) }),
      step('clean', 'prefill', 20, 25, { iteration: 2, ...sizes(3, 500, 500) }),
      step('clean', 'prefill', 25, 30, { iteration: 2, ...sizes(5, 501, 900) }),
      step('clean', 'mixed', 30, 35, { iteration: 3, ...sizes(8, 70, 900) }),
    ];
    const { data } = await analyzeUtilization(await sessionOf({ stages }, { clean: 'clean' }));
    expect(data.stages.map(({ kind, batch_size, mfu }) => [kind, batch_size, reasonOf(mfu)])).toEqual([
      ['prefill', 1, null],
      ['prefill', 4, null],
      ['prefill', 3, null],
      ['prefill', 5, 'unequal_sequences'],
      ['mixed', 8, 'mixed_steps'],
    ]);
    // Three prompts of 500 / 3 tokens on average: never more than the attention of the real lengths.
    const mean = 500 / 3;
    expect(valueOf(data.stages[2]!.flops)).toBeCloseTo(
      2 * 500 * tinyLinear + 2 * 3 * tinyHead + 3 * tinyAttention * ((mean * (mean + 1)) / 2),
      -3,
    );
  });

  test('a value over 100 % is kept, with an issue', async () => {
    // 1.4 GFLOP in 1 µs.
    const stages = [step('clean', 'prefill', 0, 0.001, sizes(1, 64, 64))];
    const document = await analyzeUtilization(await sessionOf({ stages }, { clean: 'clean' }));
    expect(valueOf(document.data.stages[0]!.mfu)).toBeCloseTo(1_464_074_240 / 1e-6 / peak, 9);
    expect(document.issues).toEqual([
      expect.objectContaining({ code: 'over_the_roof', severity: 'warning' }),
    ]);
    expect(document.issues[0]!.text).toContain('MFU and MBU over 100 % is impossible');
  });

  test('figures are missing without a model, and the analysis fails without steps', async () => {
    const stages = [step('clean', 'prefill', 0, 5, sizes(1, 64, 64))];
    const { data } = await analyzeUtilization(await sessionOf({ stages }, { clean: 'clean' }, null));
    expect(data.model).toBeNull();
    expect(reasonOf(data.stages[0]!.mfu)).toBe('no_model');
    expect(valueOf(data.stages[0]!.time_ms)).toBe(5);
    await expect(analyzeUtilization(await sessionOf({}, { clean: 'clean' }))).rejects.toThrow(
      /no prefill and no decode step/,
    );
  });

  test('two GPUs of a tensor-parallel group have twice the peaks', async () => {
    const stages = [step('clean', 'prefill', 0, 5, sizes(1, 64, 64))];
    const workload = fixtureWorkload({ tensor_parallel_size: 2 });
    const { data } = await analyzeUtilization(await sessionOf({ stages }, { clean: 'clean' }, workload));
    expect(data.device.devices).toBe(2);
    expect(valueOf(data.stages[0]!.peak_flops_per_s)).toBe(2 * peak);
  });
});

describe('executed work from a cuBLAS log of another execution', () => {
  const layer = { n: 512, k: 512, dtype: 'float16' };
  const loggedGemm = (m: number, calls: number, more: Row<'gemms'> = {}): Row<'gemms'> => ({
    execution_id: 'gemm-log',
    m,
    batch: 1,
    calls,
    ...layer,
    ...more,
  });
  const run = (execution: string) => [
    step(execution, 'prefill', 0, 5, sizes(2, 128, 128)),
    step(execution, 'decode', 5, 7, { step_index: 0, ...sizes(2, 2, 130) }),
    step(execution, 'decode', 7, 9, { step_index: 1, ...sizes(2, 2, 132) }),
  ];

  test('assigns GEMMs to steps by rows, per step of the log, from the log with more calls', async () => {
    const gemms = [
      loggedGemm(128, 16),
      // Two decode steps and two of a warm-up.
      loggedGemm(2, 64),
      loggedGemm(2, 60, { capture_id: 'other-log' }),
      loggedGemm(2, 4, { n: 4096 }),
    ];
    const warmups = run('gemm-log').map((row) => ({ ...row, stage_id: row.stage_id! + 1000, warmup: true }));
    const stages = [...run('clean'), ...run('gemm-log'), ...warmups];
    const session = await sessionOf({ stages, gemms }, { clean: 'clean', 'gemm-log': 'gemm-log' });
    const [prefill, decode] = (await analyzeUtilization(session)).data.stages;
    expect(decode!.executed.source).toBe('gemm-log');
    expect(valueOf(decode!.executed.gemm_flops)).toBe((64 * 2 * 2 * 512 * 512 + 4 * 2 * 2 * 4096 * 512) / 4);
    // No batched GEMM with one row, so attention was one kernel.
    expect(valueOf(decode!.executed.attention_flops)).toBe(tinyAttention * 131);
    expect(valueOf(prefill!.executed.gemm_flops)).toBe((16 * 2 * 128 * 512 * 512) / 2);
    expect(prefill!.executed.text).toContain('some GEMMs have no known shape');
  });

  test('counts unfused attention among the batched GEMMs', async () => {
    // 2 sequences × 8 heads, one row each, 131 keys.
    const gemms = [loggedGemm(2, 2), loggedGemm(1, 8, { batch: 16, n: 131, k: 64 })];
    const stages = [...run('clean'), ...run('gemm-log')];
    const session = await sessionOf({ stages, gemms }, { clean: 'clean', 'gemm-log': 'gemm-log' });
    const { executed } = (await analyzeUtilization(session)).data.stages[1]!;
    expect(valueOf(executed.attention_flops)).toBe(0);
    expect(valueOf(executed.gemm_flops)).toBe((2 * 2 * 2 * 512 * 512 + 8 * 16 * 2 * 131 * 64) / 2);
  });

  test('rows that two kinds of stages share are not assigned', async () => {
    const sameRows = (execution: string) => [
      step(execution, 'prefill', 0, 5, sizes(2, 2, 2)),
      step(execution, 'decode', 5, 7, { step_index: 0, ...sizes(2, 2, 4) }),
    ];
    const stages = [...sameRows('clean'), ...sameRows('gemm-log')];
    const session = await sessionOf(
      { stages, gemms: [loggedGemm(2, 4)] },
      { clean: 'clean', 'gemm-log': 'gemm-log' },
    );
    for (const { executed } of (await analyzeUtilization(session)).data.stages) {
      expect(reasonOf(executed.mfu)).toBe('no_gemm_shapes');
    }
  });
});

test.each([
  ['profiled', true],
  ['clean', false],
  ['imported', false],
] as const)(
  'says whether recorded steps of a %s execution ran under a profiler',
  async (purpose, profiled) => {
    const stages = [step('only', 'prefill', 0, 5, sizes(1, 64, 64))];
    const session = await sessionOf({ stages }, { only: purpose });
    const [prefill] = (await analyzeUtilization(session)).data.stages;
    expect(prefill!.profiled).toBe(profiled);
    const { time_ms } = prefill!;
    expect(time_ms.value === null ? '' : time_ms.source.endsWith('profiler on')).toBe(profiled);
  },
);

describe('a timeline with a clean execution', () => {
  const kernel = (from: number, to: number): Row<'kernels'> => ({
    execution_id: 'profiled',
    device: 0,
    stream: 1,
    context: 1,
    start_ns: from * ms,
    dur_ns: (to - from) * ms,
    exclusive_ns: (to - from) * ms,
    name: 'k',
    short_name: 'k',
    class: 'gemm',
  });
  const phase = (kind: string, from: number, to: number, more: Row<'stages'> = {}) => {
    const row = step('profiled', kind, from, to, { ...sizes(1, 64, 64), ...more });
    return { ...row, phase_id: row.stage_id!, device: 0 };
  };
  const purposes = { profiled: 'profiled', clean: 'clean' } as const;

  test('uses times of the clean execution', async () => {
    const stages = [phase('prefill', 0, 20), step('clean', 'prefill', 0, 8, sizes(1, 64, 64))];
    const session = await sessionOf({ stages, kernels: [kernel(1, 4)] }, purposes);
    const [prefill] = (await analyzeUtilization(session)).data.stages;
    expect(prefill!.execution_id).toBe('clean');
    expect(valueOf(prefill!.time_ms)).toBe(8);
    expect(valueOf(prefill!.mfu)).toBeCloseTo(1_464_074_240 / 0.008 / peak, 12);
  });

  test("uses the timeline's windows if the program runs ahead of the device", async () => {
    const late = { device_start_ns: 1 * ms, device_end_ns: 30 * ms };
    const stages = [phase('prefill', 0, 20, late), step('clean', 'prefill', 0, 8, sizes(1, 64, 64))];
    const session = await sessionOf({ stages, kernels: [kernel(1, 30)] }, purposes);
    const [prefill] = (await analyzeUtilization(session)).data.stages;
    expect(prefill!.execution_id).toBe('profiled');
    // First to last activity of the device.
    expect(valueOf(prefill!.time_ms)).toBe(29);
    expect(prefill!.time_ms.value === null ? '' : prefill!.time_ms.source).toContain(
      'runs ahead of the device',
    );
  });

  test('without a stated dtype takes that of most GEMM time', async () => {
    const kernels = [
      { ...kernel(1, 2), dtype: 'fp32' },
      { ...kernel(2, 5), dtype: 'bf16' },
    ];
    const stages = [phase('prefill', 0, 20)];
    const workload = fixtureWorkload();
    const withoutDtype = { ...workload, model: { ...workload.model!, dtype: 'unknown' } };
    const session = await sessionOf({ stages, kernels }, { profiled: 'profiled' }, withoutDtype);
    const { model, stages: found } = (await analyzeUtilization(session)).data;
    expect(model!.dtype).toBe('bfloat16');
    expect(valueOf(found[0]!.flops)).toBe(1_464_074_240);
    const statedFigures = (await analyzeUtilization(await withContext(session, { dtype: 'float32' }))).data;
    expect(statedFigures.model).toMatchObject({
      dtype: 'float32',
      from: "the workload's record; dtype: given by you",
    });
    expect(valueOf(statedFigures.stages[0]!.peak_flops_per_s)).toBe(67e12);
  });
});

test('float32 matrix multiplications that ran as TF32 have the peak of TF32', async () => {
  const { id } = await importSession('test/fixtures/diagnosis/tf32_prefill-fault.tgz', home);
  const [prefill] = (await analyzeUtilization(await openSession(id, home))).data.stages;
  expect(valueOf(prefill!.peak_flops_per_s)).toBe(494.7e12);
  // 8 prompts of 1024 tokens: 4 layers of 2048 with an MLP of 5632, causal attention, logits of the last tokens.
  const linear = 4 * (4 * 2048 ** 2 + 3 * 2048 * 5632);
  const attention = 4 * 4 * 8 * 2048 * ((1024 * 1025) / 2);
  const flops = 2 * 8192 * linear + attention + 2 * 8 * 2048 * 32_000;
  const seconds = valueOf(prefill!.time_ms) / 1e3;
  expect(valueOf(prefill!.mfu)).toBeCloseTo(flops / seconds / 494.7e12, 3);
});
