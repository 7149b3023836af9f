import { describe, expect, test } from 'vitest';
import { sessionOf, type Rows } from '../facts/test-session.js';
import { profileRows } from '../facts/test-rows.js';
import type { Session } from '../session/open.js';
import { testHome } from '../session/test-folder.js';
import { chromeTrace, microseconds } from './chrome-trace.js';
import { tableCsv, tablesWithRows } from './csv.js';
import type { TextExport } from './exporter.js';
import { openMetrics } from './openmetrics.js';
import { speedscope } from './speedscope.js';

async function textOf(session: Session, format: TextExport) {
  const database = await session.connect();
  const notes: string[] = [];
  let text = '';
  try {
    for await (const piece of format(session, database, (note) => notes.push(note))) text += piece;
  } finally {
    await database.close();
  }
  return { text, notes };
}

interface TraceEvent {
  ph: string;
  pid: number;
  tid: number;
  ts: number;
  dur: number;
  cat: string;
  name: string;
  args: Record<string, unknown>;
}

const oddName = 'a "quoted"\\name,\nwith\u0001 control';
/** Two operators that overlap by 1 µs (truncated clocks), one nested, one started before its stage, one with ids above 2^53. */
const hardRows: Rows = {
  stages: [{ pid: 7, tid: 7, stage_id: 0, kind: 'decode', start_ns: 1000, end_ns: 50_001, warmup: false }],
  ops: [
    { pid: 7, tid: 7, op_id: 0, stage_id: 0, name: oddName, start_ns: 500, dur_ns: 10_500, class: 'gemm' },
    { pid: 7, tid: 7, op_id: 1, stage_id: 0, name: 'next', start_ns: 10_000, dur_ns: 20_000, class: 'norm' },
    { pid: 7, tid: 7, op_id: 2, stage_id: 0, name: 'child', start_ns: 12_000, dur_ns: 18_000, class: 'gemm' },
  ],
  gaps: [
    { pid: 7, tid: 7, stage_id: 0, cause: 'host.runtime_dispatch', start_ns: 11_000, dur_ns: -1000 },
    { pid: 7, tid: 7, stage_id: 0, cause: 'host.runtime_call', start_ns: 30_000, dur_ns: 20_001 },
  ],
  kernels: [
    { pid: 7, device: 0, stream: 7, name: 'k', start_ns: 0, dur_ns: 10, class: 'gemm', stage_id: 0 },
    { pid: 7, device: 0, stream: 7, name: 'k', start_ns: 5, dur_ns: 10, class: 'gemm', stage_id: 0 },
    { pid: 7, device: 0, stream: 7, name: 'k', start_ns: 8, dur_ns: 10, class: 'gemm', stage_id: 0 },
    { pid: 7, device: 0, stream: 7, name: 'k', start_ns: 15, dur_ns: 10, class: 'gemm', stage_id: 0 },
  ],
};

test('ranks with the same process id on several hosts are separate, in the order of their numbers', async () => {
  const times = { start_ns: 0, dur_ns: 10, class: 'gemm', name: 'k', stage_id: 0 } as const;
  const kernels = [10, 2].map((rank) => ({ ...times, rank, pid: 7, device: 0, stream: 7 }));
  const stages = [10, 2].map((rank) => ({ rank, pid: 7, tid: 7, stage_id: 0, start_ns: 0, end_ns: 20 }));
  const job = await sessionOf(testHome(), { kernels, stages }, { artifacts: { ranks: {} } });
  const events = (JSON.parse((await textOf(job, chromeTrace)).text) as { traceEvents: TraceEvent[] })
    .traceEvents;
  const named = events.filter(({ name }) => name === 'process_name');
  expect(named.map(({ args }) => args['name'])).toEqual([
    expect.stringMatching(/^rank 2, /),
    expect.stringMatching(/^rank 10, /),
  ]);
  const pids = events.filter(({ cat }) => cat === 'kernels').map(({ pid, args }) => [pid, args['rank']]);
  expect(pids).toEqual([
    [named[0]!.pid, 2],
    [named[1]!.pid, 10],
  ]);
  const { profiles } = JSON.parse((await textOf(job, speedscope)).text) as Speedscope;
  expect(profiles.map(({ name }) => /rank \d+/.exec(name)?.[0])).toEqual([
    'rank 2',
    'rank 10',
    'rank 2',
    'rank 10',
  ]);
});

test('microseconds keep every nanosecond', () => {
  expect([0, 1, 1000, 1234567, -1500, 9007199254740991].map(microseconds)).toEqual([
    '0.000',
    '0.001',
    '1.000',
    '1234.567',
    '-1.500',
    '9007199254740.991',
  ]);
});

describe('chrome-trace', () => {
  const parse = async (rows: Rows) => {
    const { text, notes } = await textOf(await sessionOf(testHome(), rows), chromeTrace);
    return { all: (JSON.parse(text) as { traceEvents: TraceEvent[] }).traceEvents, notes };
  };

  test.each([
    ['overlapping', hardRows, 10],
    ['whole', profileRows(), null],
  ])('%s rows: nothing on a track overlaps partially, nothing is lost', async (_, rows, expected) => {
    const { all } = await parse(rows);
    const spans = all.filter((event) => event.ph === 'X');
    const usable = [...rows.stages!, ...rows.ops!, ...(rows.kernels ?? [])].length;
    expect(spans).toHaveLength(usable + rows.gaps!.filter((gap) => gap.dur_ns! >= 0).length);
    if (expected !== null) expect(spans.length + 1).toBe(expected);
    const tracks = new Set(spans.map(({ pid, tid }) => `${pid}/${tid}`));
    for (const track of tracks) {
      const trackSpans = spans.filter(({ pid, tid }) => `${pid}/${tid}` === track);
      const ns = trackSpans.map(
        ({ ts, dur }) => [Math.round(ts * 1000), Math.round((ts + dur) * 1000)] as const,
      );
      for (const [a0, a1] of ns)
        for (const [b0, b1] of ns)
          expect(a0 < b0 && b0 < a1 && a1 < b1, `${a0}-${a1} ${b0}-${b1}`).toBe(false);
      const names = all.filter(
        (event) => event.name === 'thread_name' && `${event.pid}/${event.tid}` === track,
      );
      expect(names).toHaveLength(1);
    }
  });

  test('each execution is a process; times, names and counters equal those of the rows', async () => {
    const rows = profileRows();
    const { all } = await parse(rows);
    const processes = all.filter((event) => event.name === 'process_name').map((event) => event.args['name']);
    expect(processes).toEqual(['clean', 'profiled']);
    const ops = all.filter((event) => event.cat === 'ops');
    expect(new Set(ops.map((event) => event.pid)).size).toBe(1);
    // 29 + 6 + 2 + 1 + 8 + 2 + 1 + 7 ms, by hand.
    expect(ops.reduce((sum, event) => sum + event.dur, 0)).toBeCloseTo(56_000, 6);
    const counters = all.filter((event) => event.ph === 'C');
    expect(counters).toHaveLength(rows.memory!.length + rows.telemetry!.length);
    expect(counters).toContainEqual(
      expect.objectContaining({ name: 'host utilization_percent', ts: 1_005_000, args: { value: 50 } }),
    );
  });

  test('escapes names, reports negative gaps, and puts overlapping kernels on separate lanes', async () => {
    const { all, notes } = await parse(hardRows);
    expect(all.some((event) => event.name === oddName)).toBe(true);
    expect(notes.join()).toContain('1 rows of gaps');
    const kernels = all.filter((event) => event.cat === 'kernels');
    // [0,10] [5,15] [8,18] overlap at 8 ns; [15,25] fits after the first.
    expect(new Set(kernels.map((event) => event.tid)).size).toBe(3);
  });
});

interface Speedscope {
  $schema: string;
  shared: { frames: { name: string }[] };
  profiles: {
    type: string;
    name: string;
    unit: string;
    startValue: number;
    endValue: number;
    events: { type: 'O' | 'C'; frame: number; at: number }[];
  }[];
}

describe('speedscope', () => {
  /** Total time by frame, computed with a stack that must be consistent. */
  function totals(file: Speedscope, profile: Speedscope['profiles'][number]): Record<string, number> {
    const stack: { frame: number; at: number }[] = [];
    const sums: Record<string, number> = {};
    let last = profile.startValue;
    for (const { type, frame, at } of profile.events) {
      expect(at).toBeGreaterThanOrEqual(last);
      last = at;
      if (type === 'O') stack.push({ frame, at });
      else {
        const opened = stack.pop();
        expect(opened?.frame).toBe(frame);
        const { name } = file.shared.frames[frame]!;
        sums[name] = (sums[name] ?? 0) + at - opened!.at;
      }
    }
    expect(stack).toEqual([]);
    expect(profile.endValue).toBe(last);
    return sums;
  }

  test('has one profile per process; sums by frame equal those of the rows', async () => {
    const { text, notes } = await textOf(await sessionOf(testHome(), profileRows()), speedscope);
    const file = JSON.parse(text) as Speedscope;
    expect(file.$schema).toBe('https://www.speedscope.app/file-format-schema.json');
    expect(file.profiles.map(({ type, unit, name }) => [type, unit, name])).toEqual([
      ['evented', 'nanoseconds', 'clean, process 100'],
      ['evented', 'nanoseconds', 'clean, process 101'],
      ['evented', 'nanoseconds', 'profiled, process 200'],
    ]);
    // Launch 0: prefill 90 + 9 + 11, decode 40 + 60 + 2 × (4 + 6), sampling 3 × (1 + 0.5 + 0.5) ms.
    expect(totals(file, file.profiles[0]!)).toEqual({ prefill: 110e6, decode: 120e6, sampling: 6e6 });
    expect(totals(file, file.profiles[2]!)).toMatchObject({
      '/gemm/0': 35e6,
      '/gemm/1': 8e6,
      '/copy/null': 2e6,
    });
    expect(notes).toEqual([]);
  });

  test('cuts overlaps with a note, and clips operators to their stage', async () => {
    const { text, notes } = await textOf(await sessionOf(testHome(), hardRows), speedscope);
    const file = JSON.parse(text) as Speedscope;
    // The first one: clipped from 500 to the stage's 1000, cut from 11000 to 10000.
    expect(totals(file, file.profiles[0]!)).toEqual({
      [oddName]: 9000,
      next: 20_000,
      child: 18_000,
      decode: 49_001,
    });
    // On the stream: 5, 7 and 3 ns of three kernels, in their own frame and in their phase's.
    expect(notes).toEqual([
      expect.stringContaining('7 events overlapped the next one and were shortened by 1.03 µs'),
    ]);
  });
});

test('csv: RFC 4180, every digit, null empty and empty text quoted', async () => {
  const session = await sessionOf(testHome(), {
    ops: [
      { pid: 7, op_id: 1, name: 'a "b",\nc', start_ns: 20, dur_ns: 1 },
      { pid: 7, op_id: 2, name: '', start_ns: 10, dur_ns: 1 },
    ],
  });
  const database = await session.connect();
  let text = '';
  expect(await tablesWithRows(database)).toEqual(['ops']);
  for await (const piece of tableCsv(database, 'ops')) text += piece;
  await database.close();
  const [header, ...rest] = text.split('\n');
  const columns = header!.split(',');
  expect(columns.slice(0, 4)).toEqual(['execution_id', 'capture_id', 'host', 'pid']);
  const line = rest[0]!.split(',');
  expect(line).toHaveLength(columns.length);
  expect(line[columns.indexOf('name')]).toBe('""');
  expect(line[columns.indexOf('layer')]).toBe('');
  expect(rest.slice(1).join('\n')).toContain('"a ""b"",\nc"');
});

test('openmetrics: sums and quantiles by hand, in seconds and bytes', async () => {
  const { text } = await textOf(await sessionOf(testHome(), profileRows()), openMetrics);
  const lines = text.split('\n');
  expect(lines.slice(-2)).toEqual(['# EOF', '']);
  const value = (sample: string) => {
    const matches = lines.filter((line) => line.startsWith(`${sample} `));
    expect(matches, sample).toHaveLength(1);
    return Number(matches[0]!.slice(sample.length + 1));
  };
  // TTFT is prefill + 1 ms of sampling: 10, 12, 20, 22 ms.
  expect(value('inferscope_ttft_seconds_count{execution="clean"}')).toBe(4);
  expect(value('inferscope_ttft_seconds_sum{execution="clean"}')).toBeCloseTo(0.064, 12);
  expect(value('inferscope_ttft_seconds{execution="clean",quantile="0.5"}')).toBeCloseTo(0.016, 12);
  // Type 7 at 0.9: index 2.7 of four values.
  expect(value('inferscope_ttft_seconds{execution="clean",quantile="0.9"}')).toBeCloseTo(0.0214, 12);
  expect(value('inferscope_stage_seconds_sum{execution="clean",stage="decode"}')).toBeCloseTo(0.056, 12);
  // GEMM time of the profiled decode steps outside the warm-up: 6 + 8 ms.
  expect(
    value('inferscope_operator_seconds_sum{execution="profiled",stage="decode",class="gemm"}'),
  ).toBeCloseTo(0.014, 12);
  expect(value('inferscope_memory_bytes{execution="clean",pid="100",kind="peak_rss",point="peak"}')).toBe(
    850_000,
  );
  for (const kind of ['HELP', 'TYPE', 'UNIT']) {
    expect(lines.filter((line) => line.startsWith(`# ${kind} inferscope_tpot_seconds `))).toHaveLength(1);
  }
  const sample =
    /^[a-z_0-9]+(\{[a-z]+="(?:[^"\\\n]|\\[\\"n])*"(,[a-z]+="(?:[^"\\\n]|\\[\\"n])*")*\})? [-+0-9.e]+$/;
  for (const line of lines.slice(0, -2)) if (!line.startsWith('# ')) expect(line).toMatch(sample);
});

test('openmetrics: requests of a load test and metrics of imported results, with units', async () => {
  const request = { execution_id: 'load-01', status: 'ok', warmup: false, output_tokens: 3 };
  const metric = { capture_id: 'vllm', point: 0, label: 'engine', statistic: 'value', source: 'file: line' };
  const rows: Rows = {
    requests: [
      {
        ...request,
        request_id: '1',
        sent_ns: 0,
        end_ns: 30_000_000,
        ttft_ns: 10_000_000,
        itl_ns: '[1e7,1e7]',
      },
      { ...request, request_id: '2', sent_ns: 10_000_000, end_ns: 60_000_000, ttft_ns: 20_000_000 },
      { ...request, request_id: '3', sent_ns: 0, end_ns: 1, status: 'timeout', output_tokens: null },
    ],
    metrics: [
      { ...metric, name: 'vllm.weights', unit: 'GiB', value: 2, definition: 'loaded "weights"' },
      {
        ...metric,
        name: 'ttft',
        statistic: 'p99',
        unit: 'ms',
        value: 40,
        source: 'recomputed from requests',
      },
      { ...metric, name: 'completed', unit: 'requests', value: 7 },
    ],
  };
  const { text } = await textOf(await sessionOf(testHome(), rows), openMetrics);
  for (const line of [
    'inferscope_request_ttft_seconds_sum{execution="load-01"} 0.03',
    'inferscope_request_itl_seconds_count{execution="load-01"} 2',
    'inferscope_requests{execution="load-01",status="timeout"} 1',
    // 6 tokens of answered requests in 60 ms.
    'inferscope_output_tokens_per_second{execution="load-01"} 100',
    '# HELP inferscope_result_vllm_weights_bytes loaded \\"weights\\"',
    `inferscope_result_vllm_weights_bytes{capture="vllm",point="0",label="engine",statistic="value",origin="file"} ${2 ** 31}`,
    'inferscope_result_ttft_seconds{capture="vllm",point="0",label="engine",statistic="p99",origin="requests"} 0.04',
    'inferscope_result_completed_requests{capture="vllm",point="0",label="engine",statistic="value",origin="file"} 7',
  ])
    expect(text.split('\n')).toContain(line);
});
