import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { packageRoot } from '../model/installation.js';
import type { Row, TableName } from '../model/tables.js';
import { ortTraceImporter, type StageCall } from './ort-trace.js';

const fixture = join(packageRoot(), 'test', 'fixtures', 'ort-1.30.0-cpu');
const folder = mkdtempSync(join(tmpdir(), 'inferscope-ort-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Recorded {
  runs: { start_ns: number; end_ns: number }[];
  created_ns: number;
  loaded_ns: number;
}
const recordedCalls = JSON.parse(readFileSync(join(fixture, 'calls.json'), 'utf8')) as Record<
  string,
  Recorded
>;

const origin = 1_852_000_000_000;
const callsOf = (dtype: string): StageCall[] =>
  recordedCalls[dtype]!.runs.map(({ start_ns, end_ns }, i) => ({
    stage_id: 10 + i,
    start_ns: start_ns - origin,
    end_ns: end_ns - origin,
  }));

async function load(path: string, calls: StageCall[]) {
  const ops: Row<'ops'>[] = [];
  const gaps: Row<'gaps'>[] = [];
  const sink = {
    append: (table: TableName, row: object) => {
      if (table === 'ops') ops.push(row as Row<'ops'>);
      else if (table === 'gaps') gaps.push(row as Row<'gaps'>);
      else throw new Error(`no rows are expected in ${table}`);
    },
  };
  const outcome = await ortTraceImporter.load(
    path,
    { sink },
    {
      execution_id: 'profiled',
      capture_id: 'profiled-trace',
      host: 'h',
      zero: { realtime_ns: null, monotonic_ns: origin },
      calls,
    },
  );
  return { outcome, ops, gaps };
}

interface RawEvent {
  cat: string;
  name: string;
  ts: number;
  dur: number;
  args: { op_name?: string };
}

/** The oracle: the whole file parsed at once, with nodes in the model_run that encloses them in time. */
function rawCalls(dtype: string) {
  const events = JSON.parse(readFileSync(join(fixture, `decoder-${dtype}.json`), 'utf8')) as RawEvent[];
  return events
    .filter((event) => event.name === 'model_run')
    .map((run) => ({
      run,
      nodes: events.filter(
        (event) =>
          event.cat === 'Node' &&
          event.name.endsWith('_kernel_time') &&
          event.ts >= run.ts &&
          event.ts < run.ts + run.dur,
      ),
    }));
}

const sum = (values: number[]) => values.reduce((x, y) => x + y, 0);

describe.each(['float32', 'int4'])('%s trace of ONNX Runtime 1.30.0', (dtype) => {
  const path = join(fixture, `decoder-${dtype}.json`);
  const calls = callsOf(dtype);
  const raw = rawCalls(dtype);

  test('operators of each call: count, names and total', async () => {
    const { ops, outcome } = await load(path, calls);
    expect(outcome.issues).toEqual([]);
    for (const [index, call] of calls.entries()) {
      const callOps = ops.filter((op) => op.stage_id === call.stage_id);
      const nodes = raw[index]!.nodes;
      expect(nodes.length).toBeGreaterThan(20);
      expect(callOps.map((op) => op.op_type)).toEqual(nodes.map((node) => node.args.op_name));
      expect(sum(callOps.map((op) => op.dur_ns!))).toBe(1000 * sum(nodes.map((node) => node.dur)));
    }
    expect(ops.map((op) => op.op_id)).toEqual(ops.map((_, i) => i));
    expect(ops.every((op) => op.provider === 'CPUExecutionProvider')).toBe(true);
  });

  test('operators and gaps fill each call exactly', async () => {
    const { ops, gaps } = await load(path, calls);
    for (const call of calls) {
      const callRows = [...ops, ...gaps].filter((row) => row.stage_id === call.stage_id);
      expect(sum(callRows.map((row) => row.dur_ns!))).toBe(call.end_ns - call.start_ns);
      const tiles = callRows
        .map((row) => [row.start_ns!, row.start_ns! + row.dur_ns!] as const)
        .sort((x, y) => x[0] - y[0] || x[1] - y[1]);
      expect(tiles[0]![0]).toBe(call.start_ns);
      expect(Math.max(...tiles.map(([, end]) => end))).toBe(call.end_ns);
    }
    const edges = gaps.filter((gap) => gap.cause === 'host.runtime_call');
    expect(edges).toHaveLength(2 * calls.length);
    expect(gaps.every((gap) => gap.before_op_id !== null || gap.cause === 'host.runtime_call')).toBe(true);
  });

  test('every operator is inside its call, and the alignment states its error bound', async () => {
    const { ops, outcome } = await load(path, calls);
    const bound = outcome.clock.error_bound_ns!;
    // Hand calculation of the possible interval for the origin of the trace, from all four calls.
    const lows = raw.map(({ run }, i) => calls[i]!.start_ns - run.ts * 1000);
    const highs = raw.map(({ run }, i) => calls[i]!.end_ns - (run.ts + run.dur) * 1000);
    expect(bound).toBe((Math.min(...highs) - Math.max(...lows)) / 2);
    const slacks = raw.map(({ run }, i) => calls[i]!.end_ns - calls[i]!.start_ns - run.dur * 1000);
    expect(bound).toBeLessThanOrEqual(Math.min(...slacks) / 2);
    for (const [index, call] of calls.entries()) {
      const callOps = ops.filter((op) => op.stage_id === call.stage_id);
      const shift = callOps[0]!.start_ns! - raw[index]!.nodes[0]!.ts * 1000;
      expect(Math.abs(shift - (Math.min(...highs) + Math.max(...lows)) / 2)).toBeLessThanOrEqual(0.5);
      expect(callOps[0]!.start_ns!).toBeGreaterThanOrEqual(call.start_ns);
      expect(callOps.at(-1)!.start_ns! + callOps.at(-1)!.dur_ns!).toBeLessThanOrEqual(call.end_ns);
    }
    // The profiler starts after the recorded creation and before the model is loaded.
    const { created_ns, loaded_ns } = recordedCalls[dtype]!;
    const traceOrigin = origin + (Math.min(...highs) + Math.max(...lows)) / 2;
    expect(traceOrigin).toBeGreaterThan(created_ns - bound);
    expect(traceOrigin).toBeLessThan(loaded_ns + bound);
  });

  test('classes and layers of one decode step', async () => {
    const { ops } = await load(path, calls);
    const step = ops.filter((op) => op.stage_id === calls[1]!.stage_id);
    const count = (type: string) => step.filter((op) => op.class === type).length;
    const matMuls = step.filter((op) => /MatMul/.test(op.op_type!));
    // Each layer: qkv or q, k, v; o; gate, up or both; down. Also the lm_head.
    expect(count('gemm')).toBe(matMuls.length);
    expect(matMuls.map((op) => op.op_type === (dtype === 'int4' ? 'MatMulNBits' : 'MatMul'))).toContain(true);
    expect(count('attention')).toBe(2);
    // Two per layer and the last one.
    expect(count('norm')).toBe(5);
    expect(count('embedding')).toBe(1);
    expect([...new Set(step.map((op) => op.layer))].sort()).toEqual([0, 1, null]);
    const inLayer = (layer: number) => step.filter((op) => op.layer === layer).map((op) => op.op_type);
    expect(inLayer(0)).toHaveLength(inLayer(1).length);
    expect(step.find((op) => op.class === 'embedding')).toMatchObject({ layer: null });
  });

  test('shapes and bytes as the runtime reports them', async () => {
    const { ops } = await load(path, calls);
    const gather = ops.find((op) => op.class === 'embedding');
    // 16 tokens of hidden size 64 in float32.
    expect(gather).toMatchObject({ output_shapes: '[[1,16,64]]', output_bytes: 16 * 64 * 4 });
    if (dtype === 'float32') {
      expect(gather).toMatchObject({
        input_shapes: '[[512,64],[1,16]]',
        input_types: '["float","int64"]',
        parameter_bytes: 512 * 64 * 4,
      });
    }
  });
});

describe('incomplete or wrong traces', () => {
  const path = join(fixture, 'decoder-float32.json');
  const text = readFileSync(path, 'utf8');
  const calls = callsOf('float32');

  function file(content: string): string {
    const name = join(folder, 'trace.json');
    writeFileSync(name, content);
    return name;
  }

  test.each([
    ['cut off in a line', text.slice(0, text.length / 2)],
    ['cut off between lines', text.slice(0, text.lastIndexOf('\n]'))],
    ['not JSON', 'hello\nworld\n'],
    ['JSON of another form', 'null\n'],
    ['a number', '42\n'],
    ['empty', ''],
    ['two traces in one file', `${text}\n${text}`],
    ['text after its end', `${text}\njunk`],
  ])('%s: E_TRACE_FILE, and no row is written', async (_, content) => {
    const rows: object[] = [];
    const sink = { append: (_table: TableName, row: object) => void rows.push(row) };
    const context = {
      execution_id: 'profiled',
      capture_id: 'c',
      host: 'h',
      zero: { realtime_ns: null, monotonic_ns: origin },
      calls,
    };
    await expect(ortTraceImporter.load(file(content), { sink }, context)).rejects.toMatchObject({
      code: 'E_TRACE_FILE',
      parts: { what: expect.stringContaining('trace.json'), fix: expect.stringContaining('endProfiling') },
    });
    expect(rows).toEqual([]);
  });

  test('fewer calls than recorded: E_TRACE_FILE with both counts', async () => {
    const tooManyCalls = [
      ...calls,
      { stage_id: 99, start_ns: calls[3]!.end_ns, end_ns: calls[3]!.end_ns + 1000 },
    ];
    await expect(load(path, tooManyCalls)).rejects.toMatchObject({
      code: 'E_TRACE_FILE',
      parts: { why: 'It contains 4 calls of the model, but the record of the same process 5.' },
    });
  });

  test('drops and counts unrecorded calls at the end', async () => {
    const { outcome, ops } = await load(path, calls.slice(0, 2));
    expect(outcome.issues).toMatchObject([{ code: 'calls_unrecorded', count: 2 }]);
    expect(new Set(ops.map((op) => op.stage_id))).toEqual(new Set([10, 11]));
    const none = await load(path, []);
    expect(none.outcome).toMatchObject({
      clock: { error_bound_ns: null },
      issues: [{ code: 'calls_unrecorded', count: 4 }],
    });
    expect(none.ops).toEqual([]);
  });

  test('does not align a record without the first calls to the wrong ones', async () => {
    await expect(load(path, calls.slice(1))).rejects.toMatchObject({ code: 'E_TRACE_FILE' });
  });

  test('imports calls that cannot enclose the trace, with a warning of clock skew', async () => {
    const late = calls.map((call, i) =>
      i === 3 ? { ...call, start_ns: call.start_ns + 9e6, end_ns: call.end_ns + 9e6 } : call,
    );
    const { outcome } = await load(path, late);
    expect(outcome.issues).toMatchObject([{ code: 'clock_skew', severity: 'warning' }]);
    expect(outcome.clock.error_bound_ns).toBeGreaterThan(3e6);
  });
});
