import { describe, expect, test } from 'vitest';
import { profileDocumentSchema } from '../model/documents/profile.js';
import { testHome } from '../session/test-folder.js';
import { workloadArchitecture } from './model-work.js';
import { readMeasuredStages } from './predict/measured.js';
import { analyzeProfile } from './profile.js';
import { clean, expectClose, profiled, reasonOf, stageOf, profileRows } from './test-rows.js';
import { repetitions, sessionOf, tinyWorkload } from './test-session.js';

const home = testHome();

describe('unknown figures are missing with a reason', () => {
  test('an unknown architecture: times are reported, figures that need the model are missing', async () => {
    const workload = tinyWorkload();
    workload.model!.config = { model_type: 'frobnicator', hidden_size: 64 };
    const document = await analyzeProfile(await sessionOf(home, profileRows(), { workload }));
    expect(profileDocumentSchema.parse(document)).toEqual(document);
    const decode = stageOf(document, 'decode');
    expectClose(decode.duration_ms, 7.75);
    for (const figure of [
      decode.flops,
      decode.bytes,
      decode.mfu,
      decode.mbu,
      decode.working_set_bytes,
      decode.bandwidth_bytes_per_s,
    ]) {
      expect(reasonOf(figure)).toBe('unknown_architecture');
    }
    expect(decode.roofline_ms.value).toBeNull();
    expect(decode.breakdown).toMatchObject({ stage_ms: 13, operators_ms: 10 });
    expect(
      decode.breakdown!.by_class.every((row) => row.necessary_flops === null && row.bound === null),
    ).toBe(true);
    expect(document.data.memory!.breakdown.map((row) => row.component)).toEqual([
      'weights',
      'runtime',
      'residual',
    ]);
  });

  test('a model without a config, with layers of no known family', () => {
    const workload = tinyWorkload();
    workload.model = { ...workload.model!, name: 'Stage', config: {}, tensors: [] };
    expect(workloadArchitecture(workload)).toMatchObject({
      reason: {
        code: 'unknown_architecture',
        text: 'Stage is not a known model family (name the model with --model)',
      },
    });
  });

  test('no profiled execution', async () => {
    const { stages, iterations } = repetitions(clean);
    const session = await sessionOf(home, { stages: stages!, iterations: iterations! });
    const document = await analyzeProfile(session);
    const decode = stageOf(document, 'decode');
    const typed = { batchSize: null, inputLen: null, outputLen: null };
    const measured = await readMeasuredStages(session, typed);
    expect(measured.map(({ phase, ms, classesMs }) => [phase, ms.value, classesMs])).toEqual([
      ['prefill', 15, null],
      ['decode', 7.75, null],
    ]);
    expect(decode.breakdown).toBeNull();
    expect(reasonOf(decode.profiled_ms)).toBe('not_profiled');
    expect(reasonOf(decode.profiler_overhead_ms)).toBe('not_profiled');
    expect(decode.mfu.value).toBeGreaterThan(0);
    expect([document.data.timeline, document.data.memory, document.data.telemetry]).toEqual([
      null,
      null,
      null,
    ]);
  });

  test('compares a shorter profiled execution over the steps that both have', async () => {
    const rows = repetitions(clean);
    const short = repetitions([{ ...profiled, decodeMs: [12], samplingMs: [1, 0.5] }]);
    const document = await analyzeProfile(
      await sessionOf(home, {
        stages: [...rows.stages!, ...short.stages!],
        iterations: [...rows.iterations!, ...short.iterations!],
      }),
    );
    // Profiled: 12 + 0.5 + 0.25 to the end. Clean step 0: 4.75 | 8.75.
    expectClose(stageOf(document, 'decode').profiled_ms, 12.75);
    expectClose(stageOf(document, 'decode').profiler_overhead_ms, 6);
  });

  test('no roofline', async () => {
    const document = await analyzeProfile(await sessionOf(home, profileRows(), { roofline: null }));
    const decode = stageOf(document, 'decode');
    expect(document.data.roofline).toBeNull();
    expect(reasonOf(decode.roofline_ms)).toBe('no_roofline');
    expect(reasonOf(decode.bandwidth_bytes_per_s)).toBe('no_roofline');
    expect([decode.mfu.value, decode.mbu.value, decode.bound]).toEqual([null, null, null]);
    expect(decode.flops.value).toBeGreaterThan(0);
    expect(decode.breakdown!.by_class[0]!.necessary_flops).toBeGreaterThan(0);
    expect(decode.breakdown!.by_class[0]!.necessary_ms).toBeNull();
  });

  test('one output token: no decode stage, no TPOT', async () => {
    const singleToken = clean.map((r) => ({ ...r, decodeMs: [], samplingMs: [1] }));
    const document = await analyzeProfile(
      await sessionOf(home, repetitions(singleToken), { workload: tinyWorkload({ output_len: 1 }) }),
    );
    expect(profileDocumentSchema.parse(document)).toEqual(document);
    expect(document.data.stages.map((stage) => stage.kind)).toEqual(['prefill', 'sampling']);
    expect(reasonOf(document.data.latency.tpot_ms)).toBe('one_token');
    expect(reasonOf(document.data.latency.decode_tokens_per_s)).toBe('one_token');
    expect(document.data.latency.decode_step_percentiles_ms).toBeNull();
  });

  test('no completed repeats', async () => {
    const document = await analyzeProfile(await sessionOf(home, repetitions(clean.slice(0, 1))));
    expect(profileDocumentSchema.parse(document)).toEqual(document);
    expect(document.data.latency).toMatchObject({ repeats: 0, warmup_repeats: 1 });
    expect(reasonOf(document.data.latency.ttft_ms)).toBe('no_repeats');
    expect(document.data.stages).toEqual([]);
  });

  test('rejects a session of another kind', async () => {
    const session = await sessionOf(home, {}, { kind: 'import' });
    await expect(analyzeProfile(session)).rejects.toMatchObject({
      code: 'E_USAGE',
      parts: { why: expect.stringContaining('nothing that can be analyzed') },
    });
  });
});
