import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { afterAll, expect, test } from 'vitest';
import { recordWriter } from '../capture/record-writer.js';
import type { Row, TableName } from '../model/tables.js';
import { importers } from './index.js';
import { recordImporter } from './record.js';

const folder = mkdtempSync(join(tmpdir(), 'inferscope-record-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const context = {
  execution_id: 'clean',
  capture_id: 'clean-record',
  host: 'h',
  zero: { realtime_ns: null, monotonic_ns: 1000 },
};

async function load(text: string) {
  const path = join(folder, 'record.jsonl');
  writeFileSync(path, text);
  const rows: [TableName, Row<TableName>][] = [];
  const sink = { append: (table: TableName, row: object) => void rows.push([table, row as Row<TableName>]) };
  const outcome = await recordImporter.load(path, { sink }, context);
  return { outcome, rows: (table: TableName) => rows.filter(([t]) => t === table).map(([, row]) => row) };
}

const common = { v: 1, execution_id: 'clean', rank: 0, pid: 7 };
const line = (fields: object) => JSON.stringify({ ...common, ...fields });
const stage = (kind: string, t_ns: number, end_ns: number, step: number | null) =>
  line({
    type: 'stage',
    kind,
    name: kind,
    t_ns,
    end_ns,
    iteration: 0,
    step,
    batch_size: 2,
    new_tokens: 8,
    context_tokens_sum: 8,
    warmup: false,
  });
const validLines = [
  line({ type: 'clock', t_ns: 1000, realtime_ns: '1795212903000000000' }),
  stage('load', 1100, 2000, null),
  stage('prefill', 2000, 5000, null),
  stage('sampling', 5000, 5100, null),
  stage('decode', 5200, 6200, 0),
  stage('sampling', 6200, 6300, 0),
  stage('decode', 6400, 7600, 1),
  line({
    type: 'request',
    t_ns: 1990,
    iteration: 0,
    launch: 3,
    warmup: false,
    batch_size: 2,
    input_len: 4,
    output_len: 3,
    first_token_ns: 5100,
    end_ns: 7700,
  }),
  line({
    type: 'memory',
    t_ns: 1050,
    device: null,
    kind: 'rss',
    bytes: 4096,
    point: 'baseline',
    source: 'VmRSS',
  }),
  line({ type: 'error', t_ns: 7800, code: 'E_OUT_OF_MEMORY', text: 'no' }),
];

test('every line becomes a row of its table, in session time', async () => {
  const { outcome, rows } = await load(`${validLines.join('\n')}\n`);
  expect(outcome.issues).toEqual([
    { code: 'workload_error', severity: 'error', text: 'E_OUT_OF_MEMORY: no' },
  ]);
  expect(outcome.clockPairs).toEqual([{ monotonic_ns: '1000', realtime_ns: '1795212903000000000' }]);
  expect(outcome.errors).toEqual([{ code: 'E_OUT_OF_MEMORY', text: 'no' }]);
  // Only calls into the model: stage ids count all stages.
  expect(outcome.callsByPid.get(7)).toEqual([
    { stage_id: 1, start_ns: 1000, end_ns: 4000 },
    { stage_id: 3, start_ns: 4200, end_ns: 5200 },
    { stage_id: 5, start_ns: 5400, end_ns: 6600 },
  ]);
  expect(rows('stages')).toHaveLength(6);
  expect(rows('stages')[3]).toMatchObject({ kind: 'decode', step_index: 0, start_ns: 4200, end_ns: 5200 });
  expect(rows('memory')).toMatchObject([{ t_ns: 50, bytes: 4096, point: 'baseline', device: null }]);
  // TTFT 5100 − 1990; TPOT (7700 − 5100) / (3 − 1).
  expect(rows('iterations')).toMatchObject([
    { start_ns: 990, end_ns: 6700, ttft_ns: 3110, tpot_ns: 1300, launch: 3 },
  ]);
});

test('one output token has no TPOT', async () => {
  const { rows } = await load(validLines[7]!.replace('"output_len":3', '"output_len":1'));
  expect(rows('iterations')).toMatchObject([{ ttft_ns: 3110, tpot_ns: null }]);
});

test('counts a truncated last line, and keeps the others', async () => {
  const text = validLines.join('\n');
  const { outcome, rows } = await load(text.slice(0, -20));
  expect(outcome.issues).toMatchObject([{ code: 'record_cut_off', severity: 'warning', count: 1 }]);
  expect(outcome.errors).toEqual([]);
  expect(rows('stages')).toHaveLength(6);
});

test('rejects a broken line in the middle, with its number and reason', async () => {
  await expect(load([validLines[0], '{"v":1,"type":"sta', validLines[1]].join('\n'))).rejects.toMatchObject({
    code: 'E_RECORD_FILE',
    parts: {
      what: expect.stringContaining('line 2 of'),
      why: 'it is not JSON',
      fix: expect.stringContaining('recording-protocol.md'),
    },
  });
  const wrong = validLines[2]!.replace('"end_ns":5000', '"end_ns":"late"');
  await expect(load([validLines[0], wrong].join('\n'))).rejects.toMatchObject({
    code: 'E_RECORD_FILE',
    parts: { why: expect.stringContaining('end_ns') },
  });
  for (const invalid of ['42', 'null', '[]', '{"type":"stage"}', '{"v":1}', '{"v":0,"type":"stage"}']) {
    await expect(load([invalid, validLines[0]].join('\n')), invalid).rejects.toMatchObject({
      code: 'E_RECORD_FILE',
    });
  }
});

test('counts and skips lines of a newer version or an unknown type', async () => {
  const newer = JSON.stringify({ ...common, v: 2, type: 'stage', something: 'else' });
  const unknown = line({ type: 'power', t_ns: 5, watts: 80 });
  const { outcome, rows } = await load([newer, unknown, ...validLines, unknown, newer, unknown].join('\n'));
  expect(outcome.issues).toEqual([
    expect.objectContaining({ code: 'workload_error' }),
    { code: 'record_newer', severity: 'warning', text: expect.any(String), count: 2 },
    { code: 'record_unknown_type', severity: 'warning', text: expect.any(String), count: 3 },
  ]);
  expect(rows('stages')).toHaveLength(6);
  // Only unknown lines: no empty session is created.
  await expect(load([newer, newer].join('\n'))).rejects.toMatchObject({ code: 'E_TRACE_NEWER' });
});

test('names a session that the program saved, without a row', async () => {
  const clocked = line({ type: 'session', t_ns: 1500, id: '20261121-1200-latency-tiny', kind: 'bench' });
  const { outcome, rows } = await load(`${clocked}\n`);
  expect(outcome.issues).toEqual([
    {
      code: 'nested_session',
      severity: 'info',
      text: 'The program saved its own session (bench): inferscope explain 20261121-1200-latency-tiny',
    },
  ]);
  expect(rows('stages')).toEqual([]);
});

test('an empty record gives no rows', async () => {
  const { outcome, rows } = await load('');
  expect(outcome).toMatchObject({ model: null, issues: [], clockPairs: [] });
  expect(rows('stages')).toEqual([]);
});

test("sizes that all requests share become the workload's, others do not", async () => {
  const request = (batch_size: number, output_len: number) =>
    line({
      type: 'request',
      t_ns: 1000,
      iteration: 0,
      launch: 0,
      warmup: false,
      batch_size,
      input_len: 128,
      output_len,
      first_token_ns: 2000,
      end_ns: 3000,
    });
  const { outcome } = await load(`${request(1, 64)}\n${request(8, 64)}\n${request(1, 64)}\n`);
  expect(outcome.sizes).toEqual({ batch_size: null, input_len: 128, output_len: 64 });
});

test('reads the output of the writer back; nothing is written before flush', async () => {
  const path = join(folder, 'written.jsonl');
  const writer = recordWriter(path, 'clean');
  const before = Number(process.hrtime.bigint());
  writer.clock();
  writer.add({ type: 'memory', device: null, kind: 'rss', bytes: 1, point: null, source: 's' });
  const sink = { append: () => {} };
  writeFileSync(path, '');
  expect((await recordImporter.load(path, { sink }, context)).clockPairs).toEqual([]);
  writer.flush();
  writer.flush();
  const { clockPairs } = await recordImporter.load(path, { sink }, context);
  expect(clockPairs).toHaveLength(1);
  const after = Number(process.hrtime.bigint());
  const { monotonic_ns, realtime_ns } = clockPairs[0]!;
  expect(Number(monotonic_ns)).toBeGreaterThanOrEqual(before);
  expect(Number(monotonic_ns)).toBeLessThanOrEqual(after);
  // The realtime of the pair is this computer's wall clock, within a minute.
  expect(Math.abs(Number(BigInt(realtime_ns) / 1_000_000n) - Date.now())).toBeLessThan(60_000);
});

test('only one importer accepts each format', () => {
  const names = (firstBytes: string) =>
    importers.filter((i) => i.sniff(firstBytes, 'x.json')).map((i) => i.name);
  expect(names(validLines[0]!)).toEqual(['inferscope-record']);
  expect(names('{"v": 1, "type": "stage"')).toEqual(['inferscope-record']);
  expect(names('[\n{"cat" : "Session","pid" :8881')).toEqual(['onnxruntime-trace']);
  for (const otherContent of ['', '{}', '[]', '{"traceEvents": []}', 'SQLite format 3']) {
    expect(names(otherContent), otherContent).toEqual([]);
  }
});

test('first calls recorded by hooks are warm-up if others of their kind follow', async () => {
  const hookStage = (kind: string, t_ns: number, first_of_shape: boolean) =>
    JSON.stringify({ ...JSON.parse(stage(kind, t_ns, t_ns + 10, 0)), marked_by: 'hooks', first_of_shape });
  const text = [
    hookStage('load', 1000, false),
    hookStage('prefill', 1100, true),
    hookStage('decode', 1200, true),
    hookStage('decode', 1300, false),
  ].join('\n');
  const { rows, outcome } = await load(text);
  const stages = rows('stages') as Row<'stages'>[];
  expect(stages.map(({ kind, start_ns, warmup }) => `${kind} ${start_ns} ${warmup}`).toSorted()).toEqual([
    'decode 200 true',
    'decode 300 false',
    'load 0 false',
    'prefill 100 false',
  ]);
  expect(outcome.issues).toMatchObject([{ code: 'stages_from_hooks', severity: 'info', count: 3 }]);
});
