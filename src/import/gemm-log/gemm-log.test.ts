import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { Issue } from '../../model/document.js';
import type { Row } from '../../model/tables.js';
import type { Importer } from '../importer.js';
import { cublasLogImporter } from './cublas.js';
import { cublasLtLogImporter } from './cublaslt.js';

const folder = mkdtempSync(join(tmpdir(), 'inferscope-gemm-'));
afterAll(() => rmSync(folder, { recursive: true }));
const fixture = (name: string) => join('test/fixtures/cublas-cuda13.0-h200', name);
const writeLog = (text: string) => {
  const path = join(folder, 'log');
  writeFileSync(path, text);
  return path;
};

async function load(importer: Importer, path: string): Promise<{ rows: Row<'gemms'>[]; issues: Issue[] }> {
  const rows: Row<'gemms'>[] = [];
  const append = (_table: string, row: Row<'gemms'>) => void rows.push(row);
  const target = { sink: { append: append as never } } as never;
  const context = {
    execution_id: 'gemm-log',
    capture_id: 'log',
    host: 'h',
    zero: { realtime_ns: null, monotonic_ns: null },
  };
  const { issues } = await importer.load(path, target, context);
  return { rows, issues };
}

/** Tokens, outputs and inputs of the linear layers of a prefill, by hand from the model's config.json. */
const shapesOf = (
  tokens: number,
  { hidden, keyValue, inner }: { hidden: number; keyValue: number; inner: number },
) => [
  [tokens, hidden, hidden],
  [tokens, keyValue, hidden],
  [tokens, inner, hidden],
  [tokens, hidden, inner],
];
const shape = ({ m, n, k }: Row<'gemms'>) => [m, n, k];

test('cuBLASLt: the layers of tiny.py (hidden 512, 2 of 8 heads for keys, inner 1408) at 4 × 64 tokens', async () => {
  const { rows } = await load(cublasLtLogImporter, fixture('cublaslt.log'));
  const prefill = rows.filter(({ m, dtype }) => m === 256 && dtype === 'float16');
  const prefillShapes = new Set(prefill.map((row) => JSON.stringify(shape(row))));
  for (const expected of shapesOf(256, { hidden: 512, keyValue: 128, inner: 1408 })) {
    expect(prefillShapes, String(expected)).toContain(JSON.stringify(expected));
  }
  expect(prefill[0]).toMatchObject({
    pid: 1451,
    layout: 'TN',
    compute_type: 'COMPUTE_32F',
    tile: '64x24x64',
    batch: 1,
    dur_ns: null,
  });
  expect(prefill[0]!.algo).toBe('66 stages=64xAUTO customoption=3 clustershape=2x4x1');
});

test('cuBLASLt: calls equal the Trace lines, and the layers of the 1.1 B Llama are complete', async () => {
  const path = fixture('cublaslt-tiny-llm.log');
  const { rows } = await load(cublasLtLogImporter, path);
  const traces = readFileSync(path, 'utf8').match(/\]\[Trace\]\[cublasLt\w*Matmul\].*stream=/g)!.length;
  expect(rows.reduce((sum, { calls }) => sum + calls!, 0)).toBe(traces);
  const half = rows.filter(({ dtype }) => dtype === 'float16').map(shape);
  expect(half).toEqual(expect.arrayContaining(shapesOf(128, { hidden: 2048, keyValue: 256, inner: 5632 })));
});

test('cuBLAS and cuBLASLt logs of a run have the same calls', async () => {
  const { rows, issues } = await load(cublasLogImporter, fixture('cublas.log'));
  const lt = await load(cublasLtLogImporter, fixture('cublaslt.log'));
  const ltShapes = lt.rows.map((row) => JSON.stringify([...shape(row), row.dtype, row.layout]));
  for (const row of rows) {
    expect(ltShapes).toContain(JSON.stringify([...shape(row), row.dtype, row.layout]));
    expect(row).toMatchObject({ pid: 1451, device: 0, tile: null });
  }
  // 12 cublasGemmEx and one cublasSgemm start in this head of a log; the last one is truncated.
  expect(rows.reduce((sum, { calls }) => sum + calls!, 0)).toBe(12);
  expect(issues).toEqual([expect.objectContaining({ code: 'gemm_log_cut_off', count: 1 })]);
  // cublasSgemm(N, N, m=64, n=32, k=1) is the 32×64 outer product of the rotary embedding.
  expect(rows[0]).toMatchObject({ m: 32, n: 64, k: 1, dtype: 'float32', layout: 'NN', compute_type: null });
  expect(rows[1]).toMatchObject({ m: 256, n: 512, k: 512, compute_type: 'COMPUTE_32F' });
});

test('batches, and hipBLASLt with the same log form', async () => {
  // ROCm/pytorch pull request 1241, then the same with a batch.
  const line =
    '[2023-06-12 21:16:46][HIPBLASLT][690719][Trace][rocblaslt_matmul] A=0x7efa94800000 Adesc=[type=R_32F rows=2400 cols=128 ld=2400] B=0x7efa7b8156d0 Bdesc=[type=R_32F rows=2400 cols=2048 ld=25272] C=0x7efa9ae00400 Cdesc=[type=R_32F rows=128 cols=2048 ld=128] D=0x7efa9ae00400 Ddesc=[type=R_32F rows=128 cols=2048 ld=128] computeDesc=[computeType=COMPUTE_32F scaleType=R_32F transA=OP_T transB=OP_N epilogue=EPILOGUE_BIAS biasPointer=0x9ae00200] workSpace=0x7efa99400000 workSpaceSizeInBytes=1048576 alpha=1 beta=0 stream=0x73ed6b0';
  const batched = line.replace(/ld=(\d+)\]/g, 'ld=$1 batchCount=16]');
  const path = writeLog(`${line}\n${batched}\n${line}\n`);
  expect(cublasLtLogImporter.sniff(line)).toBe(true);
  const { rows } = await load(cublasLtLogImporter, path);
  expect(rows).toMatchObject([
    { m: 2048, n: 128, k: 2400, batch: 1, calls: 2, dtype: 'float32', layout: 'TN', algo: null, tile: null },
    { m: 2048, n: 128, k: 2400, batch: 16, calls: 1 },
  ]);
});

test('facts: version and SMs; each sniffer accepts only its own format', async () => {
  expect((await cublasLogImporter.facts(fixture('cublas.log'))).tool).toEqual({
    name: 'cublas',
    version: '13.1.0',
  });
  expect((await cublasLtLogImporter.facts(fixture('cublaslt.log'))).hardware).toEqual({ gpu_sm_count: 132 });
  const heads = ['cublas.log', 'cublaslt.log'].map((name) => readFileSync(fixture(name), 'latin1'));
  expect(heads.map((head) => cublasLogImporter.sniff(head))).toEqual([true, false]);
  expect(heads.map((head) => cublasLtLogImporter.sniff(head))).toEqual([false, true]);
});

test('a log without a GEMM is an error, not an empty session', async () => {
  const api = '[2026-11-21 04:56:41][cublasLt][1451][Api][cublasLtCtxInit] ctx=0X15F8A3D0\n';
  await expect(load(cublasLtLogImporter, writeLog(api))).rejects.toMatchObject({ code: 'E_TRACE_FILE' });
  const create = 'I! cuBLAS (v13.1.0) function cublasStatus_t cublasCreate_v2(cublasContext**) called:\n';
  await expect(load(cublasLogImporter, writeLog(create))).rejects.toMatchObject({ code: 'E_TRACE_FILE' });
});
