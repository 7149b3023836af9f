import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { gemmsDocumentSchema } from '../../src/model/documents/gemms.js';
import { profileDocumentSchema } from '../../src/model/documents/profile.js';
import { traceDocumentSchema } from '../../src/model/documents/trace.js';
import { utilizationDocumentSchema } from '../../src/model/documents/utilization.js';
import { captures } from './capture-files.js';
import { expectFailure, inferscope, createSetup, widestLine } from './run-cli.js';

const setup = createSetup();

/** The model of test/fixtures/tiny.py. */
const config = {
  model_type: 'llama',
  vocab_size: 4096,
  hidden_size: 512,
  intermediate_size: 1408,
  num_hidden_layers: 4,
  num_attention_heads: 8,
  num_key_value_heads: 2,
  max_position_embeddings: 1024,
  tie_word_embeddings: false,
};
const model = join(setup.scratch, 'llama-tiny');

beforeAll(() => {
  mkdirSync(model, { recursive: true });
  writeFileSync(join(model, 'config.json'), JSON.stringify(config));
  const files: Record<string, string[]> = {
    torch: [captures.kineto],
    logs: [captures.cublas, captures.cublaslt],
    nsys: [captures.sqlite],
  };
  for (const [name, paths] of Object.entries(files)) {
    const result = inferscope(setup, ['import', ...paths, '--no-analyze', '--quiet', '--name', name]);
    expect(result.status, result.stderr).toBe(0);
  }
});

describe('gemm', () => {
  test('a torch trace has the GEMMs of a stage, compared with the roofline, and the cost of more rows', () => {
    const result = inferscope(setup, ['gemm', '--session', 'torch', '--stage', 'decode']);
    expect(result.status, result.stderr).toBe(0);
    expect(result.stdout).toContain('NVIDIA H200 · decode');
    expect(result.stdout).toMatch(/1×1408×512 +\S+ +24 /);
    expect(result.stdout).not.toContain('64×1408×512');
    expect(result.stdout).toContain('model, not measured');
    // M* = r·b·K·N / (2NK − r·b(K + N)), r = 989/4.8, b = 2
    expect(result.stdout.replaceAll(/\s+/g, ' ')).toContain('memory-bound up to M = 456');
    expect(widestLine(result.stdout)).toBeLessThanOrEqual(80);
    expect(result.stdout).toMatch(/no room at 80 columns: [^)]*operator/);
    const lacking = expectFailure(
      inferscope(setup, ['gemm', 'torch', '--stage', 'mixed', '--json']),
      2,
      'E_USAGE',
    );
    expect(lacking.why).toBe('It has GEMMs in decode, prefill.');
  });

  test('cuBLAS logs have layouts and algorithms, without times', () => {
    const result = inferscope(setup, ['gemm', '--session', 'logs', '--limit', '3']);
    expect(result.status, result.stderr).toBe(0);
    expect(result.stdout).toContain('Layouts and algorithms');
    expect(result.stdout).toMatch(/256×1408×512 +TN +COMPUTE_32F/);
    expect(result.stdout).toContain('more (gemm --limit N)');
    expect(widestLine(result.stdout)).toBeLessThanOrEqual(80);
  });

  test('--json is a document of its schema, --csv one row per shape', () => {
    const json = inferscope(setup, ['gemm', '--session', 'torch', '--json', '--limit', '4']);
    const { data } = gemmsDocumentSchema.parse(JSON.parse(json.stdout));
    expect(data.gemms).toHaveLength(4);
    const [first] = data.gemms;
    // The roofline limit of the first shape: 2 × (512 + 512·1408 + 1408) bytes at 4.8 TB/s.
    expect(first).toMatchObject({ m: 1, n: 1408, k: 512, roof: { bound: 'memory', from: 'sheet' } });
    expect(first!.roof!.time_ns.value).toBeCloseTo((2 * (512 + 512 * 1408 + 1408)) / 4800, 6);
    const csv = inferscope(setup, ['gemm', '--session', 'torch', '--csv']);
    const [head, ...rows] = csv.stdout.trimEnd().split('\n');
    expect(head).toMatch(/^source,execution_id,capture_id,m,n,k,batch,dtype/);
    expect(rows).toHaveLength(13);
    expect(rows[0]).toMatch(/^profiler,[^,]+,[^,]+,1,1408,512,1,float16/);
  });

  test('rejects sessions without GEMMs and invalid options', () => {
    expectFailure(inferscope(setup, ['gemm', '--session', 'nsys', '--json']), 2, 'E_USAGE');
    expectFailure(
      inferscope(setup, ['gemm', '--session', 'torch', '--stage', 'dinner', '--json']),
      2,
      'E_USAGE',
    );
    expectFailure(
      inferscope(setup, ['gemm', '--session', 'logs', '--stage', 'decode', '--json']),
      2,
      'E_USAGE',
    );
  });
});

describe('session utilization', () => {
  const sizes = ['--model', model, '--batch-size', '1', '--input-len', '64'];

  test('an nsys capture with a model has stages and steps, and with --explain the formula', () => {
    const result = inferscope(setup, ['session', 'utilization', 'nsys', ...sizes, '--explain']);
    expect(result.status, result.stderr).toBe(0);
    const text = result.stdout.replaceAll(/\s+/g, ' ');
    expect(text).toContain('MFU FLOPs / t / peak = 1.46 GFLOP / 4.07 ms / 989 TFLOP/s = 0.036 %');
    expect(text).toContain('NVIDIA H200 Tensor Core GPU data sheet');
    expect(text).toMatch(/0\.3 \S+ ms 1 68 27\.3 MFLOP/);
    expect(text).toContain('model llama-tiny in float16 (given by you; dtype: most of the GEMM time)');
    expect(widestLine(result.stdout)).toBeLessThanOrEqual(80);
  });

  test('--json is a document of its schema', () => {
    const result = inferscope(setup, ['session', 'utilization', 'nsys', ...sizes, '--json']);
    const { data } = utilizationDocumentSchema.parse(JSON.parse(result.stdout));
    expect(data.stages.map(({ kind, flops }) => [kind, flops.value])).toEqual([
      ['prefill', 1_464_074_240],
      ['decode', 2 * (11_272_192 + 512 * 4096) + 8192 * 66.5],
    ]);
  });

  test('the report of an import with a model has the same figures', () => {
    const result = inferscope(setup, ['import', captures.kineto, '--model', model, '--quiet']);
    expect(result.status, result.stderr).toBe(0);
    const text = inferscope(setup, ['report', '--format', 'text']).stdout.replaceAll(/\s+/g, ' ');
    expect(text).toContain('MFU and MBU');
    expect(text).toContain('computes 1.18× the necessary FLOPs');
    const json = inferscope(setup, ['report', '--json']);
    const { data } = traceDocumentSchema.parse(JSON.parse(json.stdout));
    expect(data.utilization?.stages.map(({ kind }) => kind)).toEqual(['prefill', 'decode']);
  });

  test('without a model prints times, and the reason for missing figures; rejects a session without stages', () => {
    // The tests above gave a model and sizes, which are saved in the session.
    expect(inferscope(setup, ['session', 'set', 'nsys', '--clear']).status).toBe(0);
    const result = inferscope(setup, ['session', 'utilization', 'nsys']);
    expect(result.status).toBe(0);
    expect(result.stdout.replaceAll(/\s+/g, ' ')).toContain(
      'does not record its model (add it with --model)',
    );
    expectFailure(inferscope(setup, ['session', 'utilization', 'logs', '--json']), 2, 'E_USAGE');
  });

  test('a profile session has the figures of the profile', () => {
    const size = ['--model', setup.tiny, '--input-len', '8', '--output-len', '4', '--launches', '1'];
    const result = inferscope(setup, ['profile', ...size, '--repeats', '1', '--quiet', '--json']);
    const profile = profileDocumentSchema.parse(JSON.parse(result.stdout)).data.stages;
    const json = inferscope(setup, ['session', 'utilization', '--json']);
    const { stages } = utilizationDocumentSchema.parse(JSON.parse(json.stdout)).data;
    for (const stage of stages) {
      const profiled = profile.find(({ kind }) => kind === stage.kind)!;
      for (const name of ['mfu', 'mbu', 'flops', 'bytes'] as const) {
        expect(stage[name].value! / profiled[name].value!).toBeCloseTo(1, 9);
      }
    }
    expect(stages).toHaveLength(2);
  });
});
