import { beforeAll, describe, expect, test } from 'vitest';
import type { Document } from '../model/document.js';
import { explainSession } from '../advice/explain/explain.js';
import { whatIf } from '../advice/what-if/what-if.js';
import { profileDocumentSchema, type Breakdown, type ProfileResult } from '../model/documents/profile.js';
import type { Row } from '../model/tables.js';
import { testHome } from '../session/test-folder.js';
import { analyzeProfile } from './profile.js';
import { expectClose, reasonOf, stageOf, profileRows } from './test-rows.js';
import { exampleRoofline, sessionOf } from './test-session.js';

const home = testHome();

let result: Document<ProfileResult>;
beforeAll(async () => {
  result = await analyzeProfile(await sessionOf(home, profileRows()));
});

test('the result matches the published schema', () => {
  expect(profileDocumentSchema.parse(result)).toEqual(result);
});

describe('latency, from the clean execution', () => {
  test('means and their confidence intervals', () => {
    const { latency } = result.data;
    expect(latency).toMatchObject({ repeats: 4, launches: 2, warmup_repeats: 2 });
    // TTFT 10, 12 | 20, 22: launch means 11 and 21, t(1) s/√2 = 12.7062 · 5.
    expectClose(latency.ttft_ms, 16);
    if (latency.ttft_ms.value === null) throw new Error('missing');
    expect(latency.ttft_ms.ci95).toEqual([0, expect.closeTo(16 + 63.531_023_681, 8)]);
    // First token to the end: 2 · 0.25 host + steps + sampling + 0.25 = 11.75 | 19.75, over two tokens.
    expectClose(latency.tpot_ms, (5.875 + 5.875 + 9.875 + 9.875) / 4);
    // 21.75, 23.75 | 39.75, 41.75.
    expectClose(latency.e2e_ms, 31.75);
    expectClose(latency.prefill_tokens_per_s, (1000 * 2 * 4) / 16);
    expectClose(latency.decode_tokens_per_s, (1000 * 2) / 7.875);
    // Tokens over the mean time, not the mean of the repeats' rates.
    expectClose(latency.output_tokens_per_s, 6000 / 31.75);
  });

  test('lists repeats in order and marks outliers', () => {
    const { per_repeat } = result.data.latency;
    expect(per_repeat.map((repeat) => [repeat.iteration, repeat.launch, repeat.ttft_ms])).toEqual([
      [1, 0, 10],
      [2, 0, 12],
      [9, 1, 20],
      [10, 1, 22],
    ]);
    expect(per_repeat.some((repeat) => repeat.outlier)).toBe(false);
  });

  test('step time runs from one start to the next, for the last step to its end', () => {
    const { decode_step_by_index_ms: byIndex, decode_step_percentiles_ms: p } = result.data.latency;
    // 4.75, 6.75, 4.75, 6.75 | 8.75, 10.75, 8.75, 10.75.
    expect(byIndex).toEqual([6.75, 8.75]);
    expectClose(p?.p50, 7.75);
    expectClose(p?.p5, 4.75);
    // Index 0.9 · 7 = 6.3 of eight values: both neighbors are 10.75.
    expectClose(p?.p90, 10.75);
    expectClose(p?.max, 10.75);
  });
});

describe('stages', () => {
  test('decode: duration over repeats, and work by hand', () => {
    const decode = stageOf(result, 'decode');
    expect(decode.instances).toBe(8);
    expectClose(decode.duration_ms, 7.75);
    if (decode.duration_ms.value === null) throw new Error('missing');
    // Launch means 5.75 and 9.75: s/√2 = 2.
    expect(decode.duration_ms.ci95![1]).toBeCloseTo(7.75 + 12.706_204_736 * 2, 8);
    expectClose(decode.tokens_per_s, 2000 / 7.75);
    // Linear layers: a layer q 64·64, k and v 64·32, o 64·64, three of 64·192; lm_head 512·64. Two sequences.
    const linear = 2 * 2 * (2 * (4096 + 2048 + 2048 + 4096 + 3 * 64 * 192) + 512 * 64);
    // Attention: 4 · heads · head_dim per key and layer; 5.5 keys on average in steps 5 and 6.
    const attention = 4 * 64 * 5.5 * 2 * 2;
    expectClose(decode.flops, linear + attention);
    // 131 392 float32 parameters, and keys and values of 5.5 tokens.
    expectClose(decode.working_set_bytes, 131_392 * 4 + 2 * 2 * 2 * 16 * 4 * 5.5 * 2);
    expect(decode.bandwidth_level).toBe('L2');
    expectClose(decode.bandwidth_bytes_per_s, 100e9);
    // Read once: all weights (the tied table as lm_head), two rows of the table and 4.5 cached tokens. Written: one
    // token.
    const minBytes = 131_392 * 4 + 2 * 64 * 4 + 2 * 2 * 2 * 16 * 4 * (4.5 + 1) * 2;
    expect(decode.bytes.value!).toBeGreaterThan(minBytes);
    expect(decode.bytes.value!).toBeLessThan(1.1 * minBytes);
    expectClose(decode.mfu, (linear + attention) / 7.75e-3 / 100e9);
    expectClose(decode.mbu, decode.bytes.value! / 7.75e-3 / 100e9);
    expectClose(decode.roofline_ms, (Math.max(decode.flops.value!, decode.bytes.value!) / 100e9) * 1e3);
    expect(decode.bound).toBe('memory');
  });

  test('prefill: only the sampled token of a sequence goes through the lm_head', () => {
    const prefill = stageOf(result, 'prefill');
    expectClose(prefill.duration_ms, 15);
    const layers = 2 * 8 * 2 * (4096 + 2048 + 2048 + 4096 + 3 * 64 * 192);
    expectClose(prefill.flops, layers + 2 * 2 * 512 * 64 + 4 * 64 * 10 * 2 * 2);
    expect(prefill.bound).toBe('compute');
  });

  test('profiler overhead', () => {
    // Profiled periods 12.75 and 14.75.
    expectClose(stageOf(result, 'decode').profiled_ms, 13.75);
    expectClose(stageOf(result, 'decode').profiler_overhead_ms, 6);
    expectClose(stageOf(result, 'prefill').profiler_overhead_ms, 15);
  });

  test('sampling is a separate stage without model work', () => {
    const sampling = stageOf(result, 'sampling');
    expect(sampling.instances).toBe(12);
    expectClose(sampling.duration_ms, 2 / 3);
    expect([sampling.mfu, sampling.flops].map(reasonOf)).toEqual(['host_stage', 'host_stage']);
  });
});

describe('breakdown, from the profiled execution', () => {
  test('operators + gaps + remainder = stage', () => {
    const decode = stageOf(result, 'decode').breakdown!;
    expect(decode).toMatchObject({
      instances: 2,
      stage_ms: 13,
      operators_ms: 10,
      gaps_between_operators_ms: 1,
      gaps_at_edges_ms: 2,
      remainder_ms: 0,
    });
    expect(stageOf(result, 'prefill').breakdown).toMatchObject({
      stage_ms: 30,
      operators_ms: 29,
      gaps_between_operators_ms: 0,
      remainder_ms: 1,
    });
  });

  test('totals by class, by layer and by operator are equal', () => {
    const decode = stageOf(result, 'decode').breakdown!;
    expect(decode.by_class.map((row) => [row.class, row.ms, row.calls])).toEqual([
      ['gemm', 7, 1],
      ['attention', 2, 1],
      ['copy', 1, 1],
    ]);
    expect(decode.by_class[0]!.share).toBeCloseTo(7 / 13, 12);
    expect(decode.by_layer).toEqual([
      {
        layer: 0,
        ms: 5,
        by_class: [
          { class: 'gemm', ms: 3 },
          { class: 'attention', ms: 2 },
        ],
      },
      { layer: 1, ms: 4, by_class: [{ class: 'gemm', ms: 4 }] },
      { layer: null, ms: 1, by_class: [{ class: 'copy', ms: 1 }] },
    ]);
    const total = (rows: Breakdown['top_operators']) => rows.reduce((sum, row) => sum + row.ms, 0);
    expect(total(decode.top_operators)).toBe(10);
    expect(decode.top_operators[0]).toMatchObject({
      name: '/gemm/1',
      ms: 4,
      calls: 0.5,
      input_shapes: '[[1]]',
    });
  });

  test('classes against the roofs', () => {
    const [gemm, , copy] = stageOf(result, 'decode').breakdown!.by_class;
    const flops = 2 * 2 * (2 * (4096 + 2048 + 2048 + 4096 + 3 * 64 * 192) + 512 * 64);
    expect(gemm!.necessary_flops).toBe(flops);
    expectClose(gemm!.achieved_flops_per_s, flops / 7e-3);
    expectClose(gemm!.achieved_bytes_per_s, gemm!.necessary_bytes! / 7e-3);
    expect(gemm!.necessary_ms!).toBeGreaterThanOrEqual((flops / 100e9) * 1e3);
    expect(copy).toMatchObject({ necessary_flops: null, necessary_ms: null, bound: null });
  });
});

test('timeline: the first timed repeat under the profiler, from its prefill', () => {
  const { stages, events, lanes, names } = result.data.timeline!;
  expect(stages.map((stage) => stage.label)).toEqual([
    'prefill',
    'sampling',
    'decode 0',
    'sampling 0',
    'decode 1',
    'sampling 1',
  ]);
  expect(stages[2]).toMatchObject({ kind: 'decode', start_ns: 31.25e6, dur_ns: 12e6 });
  expect(lanes).toEqual([{ label: 'thread 200', what: 'operators' }]);
  expect(events).toHaveLength(7);
  expect(events[1]).toMatchObject({ class: 'gemm', start_ns: 32.25e6, dur_ns: 6e6 });
  expect(names[events[1]!.name]).toBe('/gemm/0');
});

test('memory: three points of the first launch, with a negative residual shown', () => {
  const memory = result.data.memory!;
  expectClose(memory.baseline_bytes, 400_000);
  expectClose(memory.post_warmup_bytes, 800_000);
  expectClose(memory.peak_bytes, 850_000);
  expect(memory.series).toEqual([{ t_ms: 500, bytes: 700_000 }]);
  expect(memory.marks.map((mark) => mark.point)).toEqual(['baseline', 'post_warmup', 'peak']);
  const bytes = Object.fromEntries(memory.breakdown.map((row) => [row.component, row.bytes]));
  expect(bytes['weights']).toBe(525_568);
  // 2 · layers · KV heads · head_dim · 4 B · (4 + 3) tokens · 2 sequences.
  expect(bytes['kv_cache']).toBe(2 * 2 * 2 * 16 * 4 * 7 * 2);
  expect(bytes['runtime']).toBe(400_000);
  const rest = 850_000 - 525_568 - 7168 - bytes['activations']! - 400_000;
  expect(rest).toBeLessThan(0);
  expect(bytes['residual']).toBe(rest);
  expect(memory.breakdown.find((row) => row.component === 'residual')!.confidence).toBe('low');
  expect(memory.phases).toEqual([
    { label: 'warm-up', start_ms: 0, end_ms: expect.any(Number) },
    { label: 'timed', start_ms: 1000, end_ms: 1123.75 },
  ]);
});

test('memory of the software: file-backed pages at the largest sample, and memory allocated at the baseline', async () => {
  const rows = profileRows();
  const sample = (t_ms: number, kind: string, bytes: number): Row<'memory'> => ({
    capture_id: 'clean-host',
    pid: 100,
    t_ns: t_ms * 1e6,
    kind,
    bytes,
    source: '/proc',
  });
  rows.memory!.push(sample(2, 'file', 60_000), sample(600, 'file', 80_000), sample(700, 'file', 90_000));
  rows.memory!.push(sample(2, 'rss', 90_000), sample(600, 'rss', 840_000), sample(700, 'rss', 830_000));
  rows.memory!.push(sample(2, 'anonymous', 30_000), sample(600, 'anonymous', 500_000));
  const { data } = await analyzeProfile(await sessionOf(home, rows));
  const runtime = data.memory!.breakdown.find((row) => row.component === 'runtime')!;
  expect(runtime.bytes).toBe(80_000 + 30_000);
  const sum = data.memory!.breakdown.reduce((total, row) => total + row.bytes, 0);
  expect(sum).toBe(850_000);
});

test('telemetry: means over the timed repeats only', () => {
  const telemetry = result.data.telemetry!;
  expectClose(telemetry.cpu_percent, 55);
  expectClose(telemetry.other_processes_cpu_percent, 50);
  expect(reasonOf(telemetry.clock_mhz)).toBe('no_samples');
  expect(telemetry.series.find((series) => series.scope === 'host')!.points).toEqual([
    [500, 10],
    [1005, 50],
    [1015, 60],
  ]);
});

describe('expected gains', () => {
  const weightStream = (format: string, batch_size: number, ms: number) => ({
    format,
    batch_size,
    // The 131 072 weights of all linear layers in that many ms.
    weights_per_s: (131_072 / ms) * 1e3,
    bytes_per_s: 1e9,
    reached_by: 'MatMul',
  });
  /** @param slower factor by which memory is slower: the roofline takes that much more of a step */
  const sessionWithStreams = (streams: ReturnType<typeof weightStream>[], slower = 1, busy = false) => {
    const roofline = exampleRoofline();
    const bandwidth = roofline.bandwidth.map((point) => ({
      ...point,
      bytes_per_s: point.bytes_per_s / slower,
    }));
    const rows = profileRows();
    if (busy)
      rows.telemetry!.push(
        // More than 5 % of the CPU time taken by the hypervisor.
        ...[500, 1005].map((time) => ({
          ...rows.telemetry![0]!,
          t_ns: time * 1e6,
          scope: 'host',
          metric: 'steal_percent',
          value: 20,
        })),
      );
    return sessionOf(home, rows, { roofline: { ...roofline, bandwidth, weight_streams: streams } });
  };

  test('linear layers scale with the measured streams, everything else with its necessary work', async () => {
    const streams = [
      weightStream('float32', 2, 5),
      weightStream('int4', 2, 1.25),
      weightStream('float32', 8, 8),
    ];
    const session = await sessionWithStreams(streams, 500);
    const { findings, stages } = (await explainSession(session)).data;
    const found = findings.filter(({ rule }) => rule === 'weights_each_step');
    expect(found).toMatchObject([
      { stage: 'decode', change: { example: '--dtype int4' }, gain: { per: 'stage', what_if: 'int4' } },
      {
        stage: 'decode',
        change: { example: '--batch-size 8' },
        gain: { per: 'token', what_if: 'batch-size=8' },
      },
    ]);
    const [int4, batch] = found.map(({ gain }) => gain!);
    expectClose(int4!.expected_ms + int4!.after_ms, 7.75);
    expectClose(batch!.expected_ms + batch!.after_ms, 7.75 / 2);
    // Profiled operators take 10 ms, 7 of them linear layers. The clean step takes 7.75 ms with the same shares.
    const host = stages
      .find(({ kind }) => kind === 'decode')!
      .bars.reduce((sum, { id, ms }) => sum + (id.startsWith('host.') ? ms : 0), 0);
    const share = (7.75 - host) / 10;
    expectClose(int4!.after_ms, host + share * (3 + 7 / 4));
    // Four times the sequences: linear layers take 8/5 of the time, the rest up to four times as long.
    expect(8 * batch!.after_ms).toBeGreaterThan(host + share * (3 + (7 * 8) / 5));
    expect(8 * batch!.after_ms).toBeLessThan(host + share * (4 * 3 + (7 * 8) / 5) + 1e-9);
    // The finding and the what-if state the same gain.
    for (const gain of [int4!, batch!]) {
      const { data } = await whatIf(session, [gain.what_if!]);
      const after = data.stages.find(({ kind }) => kind === 'decode')!.after_ms;
      const per = gain.per === 'token' ? 8 : 1;
      const before = gain.after_ms + gain.expected_ms;
      const [low, high] = after.value === null ? [NaN, NaN] : after.ci95!;
      expect(after.value! / per).toBeCloseTo(gain.after_ms, 9);
      expect(before - low / per).toBeCloseTo(gain.high_ms, 9);
      expect(Math.max(0, before - high / per)).toBeCloseTo(gain.low_ms, 9);
    }
  });

  test('on a busy machine the advice has no gain, because its size may be noise', async () => {
    const streams = [weightStream('float32', 2, 5), weightStream('int4', 2, 1.25)];
    const { findings, stages, machine } = (await explainSession(await sessionWithStreams(streams, 500, true)))
      .data;
    expect(machine?.busy).toBe(true);
    const roof = stages.find(({ kind }) => kind === 'decode')!.roofline_ms.value!;
    expect(findings.filter(({ rule }) => rule === 'weights_each_step')).toMatchObject([
      { stage: 'decode', change: { example: '--dtype int4' }, gain: null, at_stake_ms: roof },
    ]);
  });

  test('no advice for a gain under a tenth, or without a measured stream', async () => {
    const small = [
      weightStream('float32', 2, 7),
      weightStream('int4', 2, 6.5),
      weightStream('float32', 8, 29),
    ];
    for (const streams of [small, []]) {
      const { rules } = (await explainSession(await sessionWithStreams(streams, 500))).data;
      expect(rules.find(({ rule }) => rule === 'weights_each_step')?.outcome).toBe('not_fired');
    }
  });
});
