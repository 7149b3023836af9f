import { beforeAll, expect, test } from 'vitest';
import { figure } from '../model/figure.js';
import { explainSession } from '../advice/explain/explain.js';
import { analyzeTrace } from '../facts/trace/trace.js';
import { fixture, imported } from '../facts/trace/test-import.js';
import { phaseTime } from '../model/headline-time.js';
import { pageOfView } from '../render/html/view.js';
import { markdownView } from '../render/markdown.js';
import { terminalView } from '../render/terminal/view.js';
import { rawValue } from '../render/value.js';
import { hostileText } from './test-profile.js';
import { testHome } from '../session/test-folder.js';
import type { Block, Table } from './block.js';
import type { CapturesResult } from '../model/documents/by-kind.js';
import { capturesView } from './captures.js';
import { phaseParts } from './trace-series.js';

const session = { id: 's', kind: 'import', title: 'tiny', started_at: '2026-11-21T04:58:00.000Z' };
let captures: CapturesResult;
let explain: Awaited<ReturnType<typeof explainSession>>;
let data: NonNullable<CapturesResult['trace']>['data'];

// A decode loop on an H200 with loading and warm-up.
beforeAll(async () => {
  const importedSession = await imported(
    testHome(),
    'nsys-sqlite',
    fixture('nsys-2025.3.1-h200/tiny-whole.sqlite'),
  );
  const trace = await analyzeTrace(importedSession);
  explain = await explainSession(importedSession);
  captures = { session, trace, utilization: null, counters: null, gemms: null, collectives: null };
  data = trace.data;
}, 60_000);

const tablesIn = (blocks: readonly Block[]): Table[] =>
  blocks.flatMap((block) =>
    block.type === 'table'
      ? [block]
      : block.type === 'fold'
        ? tablesIn(block.blocks)
        : block.type === 'chart'
          ? tablesIn([block.behind])
          : [],
  );
/** Rows of a section's tables, by column id. */
const rows = (id: string) =>
  tablesIn(capturesView(captures).sections.find((section) => section.id === id)!.blocks).map((table) =>
    table.rows.map(({ cells }) =>
      Object.fromEntries(table.columns.map((column, index) => [column.id, rawValue(cells[index] ?? '')])),
    ),
  );

test('sections are in display order; details are not in a summary', () => {
  const { sections } = capturesView(captures);
  expect(sections.map(({ id }) => id)).toEqual([
    'phases',
    'utilization',
    'timeline',
    'idle',
    'kernels',
    'classes',
    'launches',
    'copies',
    'overlap',
    'losses',
    'environment',
    'definitions',
  ]);
  expect(sections.every(({ level }) => (level ?? 1) > 1)).toBe(true);
});

test('phases have their times, and parts that sum to them', () => {
  const [parts, phases] = rows('phases');
  expect(phases).toMatchObject(
    data.phases.map((phase) => ({
      instances: phase.instances,
      mean_ms: phaseTime(phase).ms,
      busy_ns: phase.busy_ns,
      idle_ns: phase.idle_ns,
      idle_share: phase.idle_share,
      kernels: phase.kernels,
      launches: phase.launches,
      median_ns: phase.wall.median_ns,
    })),
  );
  const decode = data.phases.find(({ kind }) => kind === 'decode')!;
  expect(phaseParts(decode).reduce((sum, { ms }) => sum + ms, 0)).toBeCloseTo(phaseTime(decode).ms, 6);
  const decodeParts = parts!.filter(({ phase }) => phase === 'decode step');
  expect(decodeParts.reduce((sum, { mean_ms: ms }) => sum + Number(ms), 0)).toBeCloseTo(
    phaseTime(decode).ms,
    6,
  );
});

test('kernels, gaps, launches, calls and copies have every number of the document', () => {
  expect(rows('kernels').flat()).toMatchObject(
    data.kernels.map((kernel) => ({
      count: kernel.count,
      total_ns: kernel.total_ns,
      share: kernel.share,
      median_ns: kernel.median_ns,
      mean_ns: kernel.mean_ns,
      min_ns: kernel.min_ns,
      max_ns: kernel.max_ns,
      sd_ns: kernel.sd_ns,
    })),
  );
  const gaps = rows('idle').slice(0, 2).flat();
  expect(gaps.map(({ total_ns: n }) => n)).toEqual(data.idle.waits.map(({ total_ns: n }) => n));
  const [launches, , kernels, calls] = rows('launches');
  expect(launches).toMatchObject(
    data.launches.phases.map((phase) => ({
      launches: phase.launches,
      kernels: phase.kernels,
      graph_launches: phase.graph_launches,
      call_mean_ns: phase.api?.mean_ns ?? null,
      queue_median_ns: phase.queue?.median_ns ?? null,
    })),
  );
  expect(kernels).toHaveLength(data.launches.kernels.length);
  expect(calls!.map(({ total_ns: n }) => n)).toEqual(data.api_calls.map(({ total_ns: n }) => n));
  const [wholeCapture, byPhase] = rows('copies');
  expect(wholeCapture!.length + byPhase!.length).toBe(data.copies.length);
  expect(wholeCapture!.map(({ bytes }) => bytes)).toEqual(
    data.copies.filter(({ phase }) => phase === null).map(({ bytes }) => bytes),
  );
});

test('kernel classes have one table per phase on the page, and the mean instance in text', () => {
  const all = rows('classes');
  const mean = all.at(-1)!;
  const decode = data.classes.find(({ kind }) => kind === 'decode')!;
  expect(all).toHaveLength(data.classes.filter((stageClasses) => stageClasses.rows.length > 0).length + 1);
  expect(mean.find((row) => row['class'] === 'GEMM')!['decode_ns']).toBe(
    decode.rows.find((row) => row.class === 'gemm')!.per_instance_ns,
  );
});

test('the page has its charts, with a table behind each', () => {
  const page = pageOfView(capturesView(captures), { clientScript: '' });
  const charts = [...page.matchAll(/data-chart="(\w+)"/g)].map(([, form]) => form);
  expect(charts).toEqual(['bars', 'timeline', 'lines', 'bars']);
});

test.each([80, 120])('lines fit %i columns', (width) => {
  const lines = terminalView(capturesView(captures), { width, level: 2 }).split('\n');
  // Commands are not wrapped.
  for (const line of lines.filter((text) => !/^ {4}inferscope /.test(text)))
    expect([...line].length, line).toBeLessThanOrEqual(width);
});

test('the meaning of a column is stated only where the column is shown', () => {
  expect(terminalView(capturesView(captures), { width: 80, level: 2 })).not.toContain(
    'mean number per instance',
  );
  expect(markdownView(capturesView(captures))).toContain('per stage: mean number per instance');
});

test('the summary of import fits 30 lines with the report: headline, waterfall, findings, next commands', () => {
  const text = terminalView(capturesView(captures), { width: 80, explain });
  expect(text.split('\n').length).toBeLessThan(30);
  const [first] = explain.data.findings;
  const places = [
    /^ +decode step +[\d.]+ ms/m,
    /^ +measured /m,
    new RegExp(first!.title.split(':')[0]!),
    /^ +expected gain: [\d.]+ ms/m,
    /inferscope explain/,
  ].map((pattern) => text.search(pattern));
  expect(places.every((place) => place > 0)).toBe(true);
  expect(places).toEqual(places.toSorted((a, b) => a - b));
  // Sentences that would repeat the rows, bars and findings are left out.
  expect(text.replaceAll(/\s+/g, ' ')).not.toMatch(/Change first|The largest cause/);
});

test('hostile names cannot inject anything on any medium', () => {
  const hostile = structuredClone(captures);
  hostile.session.title = hostileText;
  const { kernels, launches, timeline } = hostile.trace!.data;
  for (const kernel of kernels) Object.assign(kernel, { name: hostileText, short_name: hostileText });
  for (const kernel of launches.kernels)
    Object.assign(kernel, { kernel: hostileText, api_name: hostileText });
  timeline!.names = timeline!.names.map(() => hostileText);
  const view = capturesView(hostile);
  const page = pageOfView(view, { clientScript: '' });
  expect(page).not.toContain('<img');
  expect(markdownView(view)).not.toContain('<img');
  // oxlint-disable-next-line no-control-regex
  expect(terminalView(view, { width: 80, level: 2 })).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f]/);
});

test('notes name what was counted, and a reason once', () => {
  const text = (changed: Partial<typeof data>): string =>
    markdownView(
      capturesView({ ...captures, trace: { ...captures.trace!, data: { ...data, ...changed } } }),
      { level: 3 },
    );
  const { attribution, source } = data;
  expect(text({ attribution: { ...attribution, orphans: 0 } })).toContain(
    'Every kernel has its launching API call',
  );
  expect(text({ attribution: { ...attribution, orphans: 1 } })).toContain(
    '1 kernel has no launching API call',
  );
  const phases = data.phases.map((phase) => ({
    ...phase,
    clock: 'device' as const,
    clock_why: 'it ran ahead',
  }));
  expect(text({ phases }).match(/it ran ahead/g)).toHaveLength(1);
  const onCpu = { ...source, gpu_used: false };
  expect(text({ source: onCpu })).not.toContain('Exposed');
});

test('the count of instances says that it is of the profiled run where times are clean', () => {
  const phases = data.phases.map((phase) => ({
    ...phase,
    clean_ms: figure(phase.wall.mean_ns / 1e6, 'ms', 'clean'),
  }));
  const text = (trace: typeof data) =>
    markdownView(capturesView({ ...captures, trace: { ...captures.trace!, data: trace } }));
  expect(text({ ...data, phases })).toContain('n: instances under the profiler');
  expect(text(data)).not.toContain('n: instances under the profiler');
});

test('a capture without marked phases is called whole capture', () => {
  const phases = [{ ...data.phases[0]!, kind: 'outside' as const }];
  const classes = data.classes.filter(({ kind }) => kind === null || kind === 'outside');
  const { density } = data.timeline!;
  const unmarked = density.phases.map((phase) => ({ ...phase, kind: 'outside' as const }));
  const timeline = { ...data.timeline!, density: { ...density, phases: unmarked } };
  const idle = {
    ...data.idle,
    waits: data.idle.waits.map((wait) => ({ ...wait, phase: 'outside' as const })),
  };
  const text = markdownView(
    capturesView({
      ...captures,
      trace: { ...captures.trace!, data: { ...data, phases, classes, idle, timeline } },
    }),
    { level: 3 },
  );
  expect(text.slice(0, text.indexOf('Launches'))).not.toContain('outside stages');
  expect(text).not.toContain('stages shaded');
});

test('telemetry has no metrics that only analyses use', () => {
  const series = ['utilization_percent', 'run_delay_percent'].map((metric) => ({
    scope: 'host',
    metric,
    unit: '%',
    samples: 1,
    mean: 1,
    min: 1,
    max: 1,
    phases: [],
    points: [[0, 1]] as [number, number][],
  }));
  const telemetry = { series, events: [] } as unknown as NonNullable<typeof data.telemetry>;
  const view = capturesView({ ...captures, trace: { ...captures.trace!, data: { ...data, telemetry } } });
  const text = markdownView(view, { level: 3 });
  expect(text).toContain('utilization');
  expect(text).not.toContain('waited for a core');
});
