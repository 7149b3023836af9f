import type { EChartsOption } from 'echarts';
import { expect, test } from 'vitest';
import { memoryResultDocumentSchema } from '../../../model/documents/memory-result.js';
import { memoryCharts, type MemoryChartName } from '../../charts/registry.js';
import { themes } from '../../palette.js';
import { testMemory } from '../../test-memory.js';
import { hostileText } from '../../test-profile.js';
import { memorySentences } from '../../memory-sentences.js';
import { memoryReport } from './memory.js';

const made = testMemory();
const page = memoryReport(made, { clientScript: '"use strict";' });
const section = (id: string) => page.split(`<section id="${id}"`)[1]!.split('</section>')[0]!;
const words = (html: string) => html.replaceAll(/<[^>]+>/g, ' ').replaceAll(/&nbsp;|\u00a0|\s+/g, ' ');

interface Drawn {
  name: string;
  type: string;
  stack?: string;
  data: [number, number][];
}
function series(name: MemoryChartName, part = ''): Drawn[] {
  const input = { result: made.data, part, theme: themes.light, width: 900 };
  return (memoryCharts[name].build(input) as EChartsOption & { series: Drawn[] }).series;
}

test('the document is one that memory writes, and its words cannot do anything in the page', () => {
  expect(memoryResultDocumentSchema.parse(made)).toEqual(made);
  expect(page.replace(/<script type="application\/json"[^]*?<\/script>/, '')).not.toContain(hostileText);
});

test('three sentences: how full, where it went, how it came', () => {
  expect(memorySentences(made.data).map(words)).toEqual([
    'At its peak 21.000 GB of 160.0 GB (13 %) were in use.',
    'The run’s own 20.000 GB are mostly weights 14.000 GB (70 %), KV cache 2.500 GB (13 %), activations 2.000 GB (10 %).',
    '18.000 GB came until the end of the warm-up, 2.000 GB after it.',
  ]);
});

test('points, GPUs, evidence with residual, fragmentation, allocations and their reasons', () => {
  expect(words(section('points'))).toContain(
    'peak 21.000 GB 11.000 GB 10.500 GB 0.500 GB 7.00 s NVML device',
  );
  expect(words(section('points'))).toContain('in all (peak − baseline) 20.000 GB');
  expect(words(section('gpus'))).toContain('gpu1 · NVIDIA H100 0.500 GB 9.500 GB 11.000 GB 80.000 GB 14 %');
  const parts = words(section('breakdown'));
  // The calculator has 13.48 GB: 3.7 % less.
  expect(parts).toContain('weights 14.000 GB 70 % high 13.480 GB −3.7 % evidence of model_weights');
  expect(parts).toContain('residual −0.500 GB −2.5 % – –');
  expect(parts).toContain('framework overhead gb: the allocator does not tell it apart');
  expect(words(section('fragmentation'))).toContain('gpu0 10.000 GB 9.000 GB 1.000 GB 10 % 0.250 GB');
  expect(words(section('allocations'))).toContain('modeling_llama.py:182 forward');
  expect(words(section('environment'))).toContain('KV heads 32 flag');
  for (const name of [
    'memory_timeline',
    'memory_parts',
    'memory_stack',
    'memory_reserved',
    'memory_allocations',
  ])
    expect(page).toContain(`data-chart="${name}"`);
});

test('stacked components add up to what was reserved; marks lie on the line of their own GPU', () => {
  const drawn = series('memory_stack', '1');
  const stack = drawn.filter((one) => one.stack === 'held');
  expect(stack.map(({ name }) => name)).toEqual(['weights', 'KV cache', 'activations', 'allocator reserve']);
  const at = (index: number) => stack.reduce((sum, { data }) => sum + data[index]![1], 0);
  expect([at(0), at(1), at(2), at(3)]).toEqual([0, 7.5, 9, 10]);
  const marks = drawn.find(({ type }) => type === 'scatter')!.data as unknown as {
    value: [number, number];
  }[];
  expect(marks.map(({ value }) => value)).toEqual([
    [0, 0.5],
    [6, 9.5],
    [7, 11],
  ]);
  // Each bar of the breakdown begins where the one before ended; the negative residual goes back.
  const [from, length] = series('memory_parts').map(
    ({ data }) => data as unknown as (number | { value: number })[],
  );
  const value = (one: number | { value: number }) => (typeof one === 'number' ? one : one.value) / 1e9;
  expect(from!.map(value)).toEqual([0, 14, 16.5, 18.5, 20, 0]);
  expect(length!.map(value)).toEqual([14, 2.5, 2, 2, 0.5, 20]);
});

test('a run that was not sampled, and no snapshot, leave no empty charts', () => {
  const bare = structuredClone(made);
  Object.assign(bare.data, { allocator: [], fragmentation: [], allocations: null });
  bare.data.timeline.series = [];
  const html = memoryReport(bare, { clientScript: '' });
  expect(html).toContain('Memory was not sampled.');
  for (const id of ['allocator', 'fragmentation', 'allocations'])
    expect(html).not.toContain(`<section id="${id}"`);
});
