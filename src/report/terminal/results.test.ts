import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { document } from '../../model/document.js';
import type { BenchmarkResults } from '../../model/documents/results.js';
import { testExplain } from '../test-explain.js';
import { resultsSummary } from './results.js';

const statistic = (name: string, value: number, source = 'file: x') => ({
  statistic: name,
  value,
  n: 11,
  source,
});
const results: BenchmarkResults = {
  session: {
    id: 'i',
    name: null,
    title: 'serve.json · vllm bench serve',
    started_at: '2026-11-21T00:00:00Z',
  },
  captures: [
    {
      capture_id: 'c',
      tool: { name: 'vllm bench serve', version: null },
      points: [
        {
          label: 'rate inf',
          requests: { ok: 11, failed: 1 },
          metrics: [
            {
              name: 'ttft',
              unit: 'ms',
              definition: 'd',
              defined_as_ours: true,
              file: [statistic('mean', 79), statistic('p99', 100)],
              recomputed: [statistic('mean', 79.7, 'recomputed from 11 requests')],
            },
            {
              name: 'completed',
              unit: 'requests',
              definition: 'd',
              defined_as_ours: true,
              file: [statistic('value', 11)],
              recomputed: [],
            },
            {
              name: 'guidellm.request_latency',
              unit: 'ms',
              definition: 'to the end of the response',
              defined_as_ours: false,
              file: [statistic('mean', 190), statistic('p99_step', 250)],
              recomputed: [],
            },
          ],
        },
      ],
    },
  ],
};

test('ours where it was recomputed, the tool’s elsewhere; other definitions and other percentiles are told', () => {
  const issues = [{ code: 'x', severity: 'error' as const, text: 'no request completed' }];
  const text = stripVTControlCharacters(resultsSummary(document('results', '1.0', results, issues), 200));
  expect(text.split('\n').every((line) => line.length <= 80)).toBe(true);
  expect(text).toContain('vllm bench serve · rate inf · 11 requests, 1 failed');
  expect(text).toMatch(/ttft +79\.7 ms \* +– +100 ms\n/);
  expect(text).toMatch(/completed +11 requests/);
  expect(text).toMatch(/guidellm\.request_latency +190 ms +– +250 ms †/);
  expect(text).toContain('guidellm.request_latency  to the end of the response');
  expect(text).toContain('error: no request completed');
});

test('sentences and the waterfall come before the tables', () => {
  const text = stripVTControlCharacters(
    resultsSummary(document('results', '1.0', results, []), 80, testExplain()),
  );
  const places = [
    'A decode step takes 23.3 ms',
    'host.program',
    'Launch-bound',
    'vllm bench serve · rate inf',
  ].map((part) => text.lastIndexOf(part));
  expect(places[0]).toBeGreaterThan(0);
  expect(places).toEqual(places.toSorted((a, b) => a - b));
});
