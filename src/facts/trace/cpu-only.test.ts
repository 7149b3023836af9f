import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Document } from '../../model/document.js';
import { type TraceResult, traceDocumentSchema } from '../../model/documents/trace.js';
import { terminalView } from '../../render/terminal/view.js';
import { capturesView } from '../../views/captures.js';
import { testHome } from '../../session/test-folder.js';
import { analyzeCaptures } from '../captures.js';
import { fixture, imported } from './test-import.js';

const home = testHome();

interface KeyAverage {
  key: string;
  count: number;
  self_cpu_time_us: number;
  cpu_time_us: number;
}

/** Compares a capture with operators and without device work to torch's own key_averages(). */
describe('a program that uses no GPU', () => {
  let trace: Document<TraceResult>;
  const oracle = JSON.parse(
    readFileSync(fixture('kineto-torch2.11-cpu/layer.key_averages.json'), 'utf8'),
  ) as KeyAverage[];

  beforeAll(async () => {
    const session = await imported(home, 'kineto', fixture('kineto-torch2.11-cpu/layer.json.gz'));
    const captures = await analyzeCaptures(session);
    expect(captures.trace).not.toBeNull();
    trace = captures.trace!;
  }, 60_000);

  test('matches its schema and says that no GPU was used', () => {
    traceDocumentSchema.parse(trace);
    expect(trace.data.source.gpu_used).toBe(false);
    expect(trace.data.phases.map(({ kind, instances }) => [kind, instances])).toEqual([
      ['prefill', 1],
      ['decode', 3],
    ]);
    expect(trace.data.phases.flatMap(({ idle_by_cause }) => idle_by_cause)).toEqual([]);
  });

  test("phases take as long as torch's ranges", () => {
    const total = (pattern: RegExp) =>
      oracle.filter(({ key }) => pattern.test(key)).reduce((sum, { cpu_time_us }) => sum + cpu_time_us, 0);
    const prefill = trace.data.phases.find(({ kind }) => kind === 'prefill')!;
    expect(prefill.wall.mean_ns / 1e3).toBeCloseTo(total(/^inferscope:prefill/), 0);
  });

  test('operators of decode steps have the calls and shapes of torch, and at most its CPU time over all phases', () => {
    const { operators } = trace.data;
    expect(operators).toMatchObject({ phase: 'decode', verdict: 'cpu' });
    // Every pass makes the same calls, and three of four passes are decode steps.
    for (const name of ['aten::mm', 'aten::addmm', 'aten::native_layer_norm']) {
      const row = operators!.rows.find((candidate) => candidate.name === name)!;
      const whole = oracle.find(({ key }) => key === name)!;
      expect(row.count, name).toBe((whole.count * 3) / 4);
      expect(row.self_cpu_ns, name).toBeGreaterThan(0);
      expect(row.self_cpu_ns / 1e3, name).toBeLessThan(whole.self_cpu_time_us);
      expect(row.shapes[0]!.input_shapes, name).toContain('64');
      expect(row.verdict).toBe('cpu');
    }
  });

  test("classes sum operators' self time like torch", () => {
    const [whole, ...phases] = trace.data.classes;
    const sum = (rows: (typeof phases)[number]['rows']) => rows.reduce((ns, row) => ns + row.total_ns, 0);
    const atenOperators = oracle.filter(({ key }) => key.startsWith('aten::'));
    const us = atenOperators.reduce((all, { self_cpu_time_us }) => all + self_cpu_time_us, 0);
    expect(Math.abs(sum(whole!.rows) / 1e3 / us - 1)).toBeLessThan(0.001);
    expect(phases.reduce((ns, { rows }) => ns + sum(rows), 0)).toBeCloseTo(sum(whole!.rows), 0);
    expect(phases.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['prefill', 'decode']));
  });

  test('the timeline shows operators by depth, each inside its caller in the lane above', () => {
    const { events, lanes, names, dropped } = trace.data.timeline!;
    expect([dropped, lanes.every(({ what }) => what === 'operators')]).toEqual([0, true]);
    // The capture has one prefill and three decode steps, and all are shown.
    const mm = events.filter(({ name }) => names[name] === 'aten::mm');
    expect(mm).toHaveLength(oracle.find(({ key }) => key === 'aten::mm')!.count);
    for (const { lane, start_ns, dur_ns } of events.filter((event) => event.lane > 0)) {
      const caller = events.find(
        (event) =>
          event.lane === lane - 1 &&
          event.start_ns <= start_ns &&
          event.start_ns + event.dur_ns >= start_ns + dur_ns,
      );
      expect(caller).toBeDefined();
    }
  });

  test('the terminal shows operators in 80 columns and no idle time', () => {
    const session = { id: 'cpu', kind: 'import', title: 'cpu', started_at: '' };
    const view = capturesView({ session, trace, counters: null, gemms: null });
    const text = terminalView(view, { width: 80, level: 2 });
    expect(text).toContain('no GPU used');
    expect(text).toContain('aten::addmm');
    expect(text).not.toMatch(/idle|launch/);
    for (const line of text.split('\n')) expect([...line].length, line).toBeLessThanOrEqual(80);
  });
});
