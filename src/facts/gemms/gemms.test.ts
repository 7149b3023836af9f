import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';
import { cublasLogImporter } from '../../import/gemm-log/cublas.js';
import { cublasLtLogImporter } from '../../import/gemm-log/cublaslt.js';
import { parseGemmName } from '../../import/kernel-classes/gemm-name.js';
import { gemmsDocumentSchema, type GemmsResult } from '../../model/documents/gemms.js';
import type { Document } from '../../model/document.js';
import { figure, type Figure } from '../../model/figure.js';
import { createSession, type SessionWriter } from '../../session/create.js';
import { openSession } from '../../session/open.js';
import { testHome } from '../../session/test-folder.js';
import { summary } from '../../session/test-session.js';
import { analyzeGemms } from './gemms.js';
import { alignmentFaults, operatorShape, operatorType } from './shape.js';
import { splitsOf, tiling } from './tiling.js';

const home = testHome();
const kineto = 'test/fixtures/kineto-torch2.11-h200/kineto-tiny';
const logs = 'test/fixtures/cublas-cuda13.0-h200';

async function analyze(
  fill: (writer: SessionWriter) => Promise<void>,
  importers: Record<string, string> = {},
  hardware: Record<string, string | number> = {},
): Promise<Document<GemmsResult>> {
  const writer = await createSession({ home, label: 'gemms', kind: 'import' });
  await fill(writer);
  const captures = Object.entries(importers).map(([capture_id, importer]) => ({
    ...summary.captures[0]!,
    capture_id,
    importer,
  }));
  const { id } = await writer.finish({ ...summary, captures, hardware });
  const result = await analyzeGemms(await openSession(id, home));
  expect(gemmsDocumentSchema.parse(result)).toBeTruthy();
  return result;
}

interface Event {
  cat?: string;
  name: string;
  dur: number;
  args: Record<string, unknown>;
}

/** Operators and kernels as recorded in the trace, linked by "External id". */
async function appendProfile({ sink }: SessionWriter): Promise<void> {
  const text = gunzipSync(readFileSync(`${kineto}.json.gz`)).toString();
  const keys = { execution_id: 'profiled', capture_id: 'kineto', host: 'h', pid: 1, rank: 0 };
  for (const { cat, name, dur, args } of (JSON.parse(text) as { traceEvents: Event[] }).traceEvents) {
    const external = args?.['External id'];
    const op_id = typeof external === 'number' ? external : null;
    const dur_ns = Math.round(dur * 1000);
    if (cat === 'cpu_op') {
      const shapes = {
        input_shapes: JSON.stringify(args['Input Dims']),
        input_types: JSON.stringify(args['Input type']),
      };
      sink.append('ops', { ...keys, op_id, name, dur_ns, ...(args['Input Dims'] ? shapes : {}) });
    } else if (cat === 'kernel') {
      sink.append('kernels', {
        ...keys,
        op_id,
        name,
        short_name: name,
        dur_ns,
        tile: parseGemmName(name).tile,
      });
    }
  }
}

const appendLog =
  (importer: typeof cublasLogImporter | typeof cublasLtLogImporter, file: string, capture: string) =>
  async (writer: SessionWriter) => {
    await importer.load(join(logs, file), writer, {
      execution_id: 'gemm-log',
      capture_id: capture,
      host: 'h',
      zero: { realtime_ns: null, monotonic_ns: null },
    });
  };

const value = (found: Figure) => {
  if (found.value === null) throw new Error(found.reason.text);
  return found.value;
};

const h200 = { gpu_name: 'NVIDIA H200', gpu_sm_count: 132 };

test('operators without kernels on a machine without a GPU ran on the CPU', async () => {
  const keys = { execution_id: 'profiled', capture_id: 'kineto', host: 'h', pid: 1, rank: 0 };
  const shapes = { input_shapes: '[[8, 128], [128, 64]]', input_types: '["float", "float"]' };
  const { data } = await analyze(
    async ({ sink }) => sink.append('ops', { ...keys, op_id: 1, name: 'aten::mm', dur_ns: 900, ...shapes }),
    {},
    {},
  );
  const [gemm] = data.gemms;
  const why = { reason: { text: 'these operators ran on the CPU' } };
  expect(gemm).toMatchObject({
    total_time_ns: why,
    achieved_flops: why,
    peak_share: why,
    roof: { share: why },
  });
});

describe('profiled shapes', () => {
  let data: GemmsResult;
  const shape = (m: number, n: number, k: number) =>
    data.gemms.find((gemm) => gemm.m === m && gemm.n === n && gemm.k === k)!;
  beforeAll(async () => {
    data = (await analyze(appendProfile, {}, h200)).data;
  });

  test("time and calls of an operator equal torch's (key_averages)", () => {
    const averages = JSON.parse(readFileSync(`${kineto}.key_averages.json`, 'utf8')) as {
      key: string;
      count: number;
      self_device_time_us: number;
    }[];
    for (const name of ['aten::mm', 'aten::bmm']) {
      const torch = averages.find(({ key }) => key === name)!;
      const operatorGemms = data.gemms.filter(({ made_by }) =>
        made_by.some((operator) => operator.name === name),
      );
      expect(operatorGemms.reduce((sum, { calls }) => sum + calls, 0)).toBe(torch.count);
      const total = operatorGemms.reduce((sum, { total_time_ns }) => sum + value(total_time_ns), 0);
      expect(total / 1000).toBeCloseTo(torch.self_device_time_us, 2);
    }
  });

  test('the MLP of a decode step: 3 steps × 4 layers × gate and up', () => {
    const gate = shape(1, 1408, 512);
    expect(gate).toMatchObject({ calls: 24, dtype: 'float16', source: 'profiler', batch: 1 });
    expect(gate.flop).toBe(2 * 1408 * 512);
    const mean = value(gate.total_time_ns) / 24;
    expect(value(gate.achieved_flops)).toBeCloseTo((gate.flop / mean) * 1e9, -3);
    // H200: 989.4 dense TFLOP/s in float16
    expect(value(gate.peak_share) / (value(gate.achieved_flops) / 989.4e12)).toBeCloseTo(1, 3);
    // bytes: 2 × (512 + 512 × 1408 + 1408)
    expect(value(gate.arithmetic_intensity)).toBeCloseTo(1_441_792 / 1_445_632, 9);
  });

  test('counts mm but not the linear that only calls it', () => {
    expect(data.gemms.flatMap(({ made_by }) => made_by.map(({ name }) => name))).not.toContain(
      'aten::linear',
    );
    expect(shape(64, 512, 1408).calls).toBe(4);
  });
});

test("tiles and waves equal the grid and waves in ncu for the same model's layers", () => {
  const sms = figure(132, 'SMs', 'test');
  const tilingOf = (n: number, tile: string) => tiling({ m: 64, n, k: 512, batch: 1 }, tile, 1, 1, sms)!;
  // ncu-tiny: grids (8,8), (8,2), (8,11); launch__waves_per_multiprocessor 0.48, 0.12, 0.67
  const profiled: [number, string, number, string][] = [
    [512, '64x8x64', 64, '0.48'],
    [128, '64x8x64', 16, '0.12'],
    [1408, '64x16x64', 88, '0.67'],
  ];
  for (const [n, tile, blocks, waves] of profiled) {
    expect(value(tilingOf(n, tile).tiles)).toBe(blocks);
    expect(value(tilingOf(n, tile).waves).toFixed(2)).toBe(waves);
    expect(value(tilingOf(n, tile).tile_efficiency)).toBe(1);
  }
  expect(value(tilingOf(1408, '64x16x64').wave_efficiency)).toBeCloseTo(88 / 132, 6);
  // 4096³ in 256x128: 512 tiles, 3.88 waves of 132, the last one nearly full
  const large = tiling({ m: 4096, n: 4096, k: 4096, batch: 1 }, '256x128', 1, 1, sms)!;
  expect([value(large.tiles), value(large.wave_efficiency).toFixed(3)]).toEqual([512, '0.970']);
  expect(
    tiling({ m: 1, n: 8, k: 8, batch: 1 }, '64x8', 1, splitsOf('nvjet_splitK_NNT'), sms)!.waves.value,
  ).toBeNull();
  expect([
    splitsOf('66 stages=64xAUTO splitsk=4'),
    splitsOf('nvjet_TNT'),
    splitsOf('sm80_splitKreduce'),
  ]).toEqual([4, 1, null]);
});

describe('logs', () => {
  test('a shape has its algorithms, and its time if the profiler has the same shape', async () => {
    const { data, issues } = await analyze(
      async (writer) => {
        await appendProfile(writer);
        await appendLog(cublasLtLogImporter, 'cublaslt.log', 'lt')(writer);
        writer.sink.append('gemms', {
          execution_id: 'gemm-log',
          capture_id: 'lt',
          m: 64,
          n: 512,
          k: 512,
          dtype: 'float16',
          calls: 1,
        });
      },
      { lt: 'cublaslt-log', kineto: 'kineto' },
      h200,
    );
    const logged = data.gemms.filter(({ source }) => source === 'cublaslt-log');
    const query = logged.find(({ m, n, k }) => m === 256 && n === 512 && k === 512)!;
    // 64x24 tiles: 512/64 × ⌈256/24⌉ = 8 × 11
    expect(value(query.tilings[0]!.tiles)).toBe(88);
    expect(value(query.tilings[0]!.tile_efficiency)).toBeCloseTo(256 / 264, 6);
    expect(query.total_time_ns).toMatchObject({ reason: { code: 'log_has_no_times' } });
    expect(query.achieved_flops).toMatchObject({ reason: { code: 'log_has_no_times' } });
    const timedAndLogged = data.gemms.filter(
      ({ m, n, k, dtype }) => m === 64 && n === 512 && k === 512 && dtype === 'float16',
    );
    expect(timedAndLogged.map(({ source }) => source)).toEqual(['profiler', 'cublaslt-log']);
    expect(value(timedAndLogged[1]!.achieved_flops)).toBeCloseTo(
      value(timedAndLogged[0]!.achieved_flops),
      -3,
    );
    expect(issues.map(({ code }) => code)).toContain('several_gemm_sources');
  });

  test('without GPU name or SM count, figures are missing with a reason', async () => {
    const { data } = await analyze(appendLog(cublasLogImporter, 'cublas.log', 'blas'), {
      blas: 'cublas-log',
    });
    expect(data.gemms[0]).toMatchObject({ source: 'cublas-log', tilings: [] });
    expect(data.sm_count).toMatchObject({ value: null, reason: { code: 'no_sm_count' } });
    expect(data.gpu).toBeNull();
  });
});

test('reads the matrices of operators by position', () => {
  const shape = (name: string, ...inputs: number[][]) => operatorShape(name, JSON.stringify(inputs));
  expect(shape('aten::addmm', [1536], [7, 512], [512, 1536], [], [])).toEqual({
    m: 7,
    n: 1536,
    k: 512,
    batch: 1,
  });
  expect(shape('aten::bmm', [16, 5, 64], [16, 64, 9])).toEqual({ m: 5, n: 9, k: 64, batch: 16 });
  expect(shape('aten::linear', [2, 3, 512], [1408, 512], [])).toEqual({ m: 6, n: 1408, k: 512, batch: 1 });
  expect(shape('aten::mv', [5, 64], [64])).toEqual({ m: 5, n: 1, k: 64, batch: 1 });
  expect(shape('aten::mm', [5, 64], [63, 9])).toBeNull();
  expect(shape('aten::mm', [])).toBeNull();
  expect(operatorType('aten::addmm', '["float","c10::BFloat16","c10::BFloat16"]')).toBe('bfloat16');
  expect(operatorType('aten::_scaled_mm', '["c10::Float8_e4m3fn"]')).toBe('float8_e4m3');
  expect(operatorType('aten::mm', null)).toBeNull();
});

test('requires K and N to be multiples of 16 bytes', () => {
  const shape = { m: 3, n: 50_257, k: 768, batch: 1 };
  expect(alignmentFaults(shape, 'float16')).toEqual([
    'N = 50257 is not a multiple of 8 (16 bytes of float16)',
  ]);
  expect(alignmentFaults({ ...shape, n: 50_264 }, 'float16')).toEqual([]);
  expect(alignmentFaults({ ...shape, n: 50_264 }, 'float8_e4m3')).toHaveLength(1);
  expect(alignmentFaults({ ...shape, k: 770, n: 4 }, 'float32')).toEqual([
    'K = 770 is not a multiple of 4 (16 bytes of float32)',
  ]);
  expect(alignmentFaults(shape, 'float64')).toEqual([]);
});

test('counts operators without shapes, and says what to record in a session without any', async () => {
  const { data, issues } = await analyze(async ({ sink }) => {
    sink.append('ops', { execution_id: 'e', capture_id: 'c', op_id: 1, name: 'aten::mm' });
  });
  expect(data.gemms).toEqual([]);
  expect(issues.map(({ code, count }) => [code, count])).toEqual([
    ['no_gemm_shapes', undefined],
    ['ops_without_shapes', 1],
  ]);
});
