import { expect, test } from 'vitest';
import type { NamedKernel } from '../facts/trace/kernel-instances.js';
import { kernelsPage } from './kernels-page.js';

const kernels = Array.from({ length: 450 }, (_, number): NamedKernel => {
  const ns = 1000 - number;
  const spread = { count: 1, total_ns: ns, mean_ns: ns, median_ns: ns, min_ns: ns, max_ns: ns, sd_ns: null };
  return {
    ...spread,
    name: `kernel_${number}_`,
    short_name: `kernel_${number}_`,
    tile: null,
    class: 'gemm',
    share: 0,
    p95_ns: ns,
    bins: [{ from_ns: 10, to_ns: 10, count: 1 }],
    longest: { start_ns: 0, end_ns: ns },
  };
});

const pageOf = (page: number, filter = '', rows: readonly NamedKernel[] = kernels): string =>
  kernelsPage(
    {
      session: { key: 'a', id: 'a', title: 'a', pages: [] },
      part: { execution: 'e', rank: null, device: null },
      kernels: rows,
      origins: [],
      roofline: [],
      counterCharts: () => [],
    },
    { sort: '', filter, chosen: '', page },
  );

const namesIn = (html: string): Set<string> => new Set(html.match(/kernel_\d+_/g));

test('kernels of one template have different labels, and are found by full name', () => {
  const named = (functor: string, row: NamedKernel): NamedKernel => ({
    ...row,
    name: `void at::native::vectorized_elementwise_kernel<4, at::native::${functor}<float>>(int, ${functor})`,
    short_name: 'vectorized_elementwise_kernel',
  });
  const two = [named('CUDAFunctor_add', kernels[0]!), named('GeluFunctor', kernels[1]!)];
  const labels = (html: string): string[] =>
    [...html.matchAll(/<a href="[^"]*name=[^"]*" title="[^"]*">([^<]*)</g)].map(([, label]) => label!);
  expect(labels(pageOf(1, '', two))).toEqual(['elementwise add', 'elementwise gelu']);
  expect(labels(pageOf(1, 'GeluFunctor', two))).toEqual(['elementwise gelu']);
});

test('every kernel is on exactly one page of a long table, and a filter finds it', () => {
  const pages = [1, 2, 3, 4, 5].map((page) => namesIn(pageOf(page)));
  expect(pages.map(({ size }) => size)).toEqual([100, 100, 100, 100, 50]);
  expect(new Set(pages.flatMap((names) => [...names])).size).toBe(450);
  expect(pageOf(1)).toContain('page=2');
  expect(pageOf(5)).not.toContain('page=6');
  expect(namesIn(pageOf(99))).toEqual(pages[4]);
  expect([...namesIn(pageOf(1, 'kernel_449'))]).toEqual(['kernel_449_']);
});
