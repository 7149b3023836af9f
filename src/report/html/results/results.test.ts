import { expect, it } from 'vitest';
import { document } from '../../../model/document.js';
import {
  type BenchmarkResults,
  resultsDocumentSchema,
  resultsVersion,
} from '../../../model/documents/results.js';
import { testExplain } from '../../test-explain.js';
import { resultsReport } from './results.js';

const statistic = (name: string, value: number) => ({
  statistic: name,
  value,
  n: 10,
  source: `file: ${name}_x`,
});

const made = document<BenchmarkResults>('results', resultsVersion, {
  session: { id: 's', name: null, title: 'a.json · GuideLLM', started_at: '2026-11-21T00:00:00Z' },
  captures: [
    {
      capture_id: 'c0',
      tool: { name: 'guidellm', version: '0.6' },
      points: [
        {
          label: 'concurrency 4',
          requests: { ok: 10, failed: 1 },
          metrics: [
            {
              name: 'ttft',
              unit: 'ms',
              definition: 'first token iteration',
              defined_as_ours: true,
              file: [statistic('mean', 40), statistic('p99_step', 90)],
              recomputed: [statistic('mean', 41), statistic('p99', 88)],
            },
            {
              name: 'guidellm.tpot',
              unit: 'ms',
              definition: '(last − start) / n: includes TTFT <b>',
              defined_as_ours: false,
              file: [statistic('value', 12)],
              recomputed: [],
            },
          ],
        },
      ],
    },
  ],
});

const words = (html: string): string =>
  html
    .replaceAll(/<(style|script)[\s\S]*?<\/\1>/g, '')
    .replaceAll(/<[^>]+>/g, ' ')
    .replaceAll('\u00a0', ' ')
    .replaceAll(/\s+/g, ' ');
const text = words(resultsReport(made, { clientScript: '"use strict";' }));

it('imported results: the tool’s value and ours in rows of their own, foreign definitions marked wherever they stand', () => {
  expect(resultsDocumentSchema.safeParse(made).error).toBeUndefined();
  expect(text).toContain('ttft the tool as ours 40.0 ms – 90.0 ms 10');
  expect(text).toContain('ttft recomputed from its requests as ours 41.0 ms 88.0 ms – 10');
  expect(text).toContain('guidellm.tpot the tool not comparable 12.0 ms – – 10');
  expect(text).toContain('not to be held against ours: guidellm.tpot.');
  expect(text).toContain('includes TTFT &lt;b&gt;');
  expect(text).toContain('10 requests, 1 failed');
  expect(text).toContain('mean_x, p99_step_x');
});

it('leads with sentences, waterfall and findings', () => {
  const html = resultsReport(made, { clientScript: '', explain: testExplain() });
  const led = words(html);
  const places = [
    'A decode step takes 23.3 ms',
    'Where the time goes',
    'Launch-bound',
    'ttft the tool as ours',
  ];
  const found = places.map((part) => led.lastIndexOf(part));
  expect(found[0]).toBeGreaterThan(0);
  expect(found).toEqual(found.toSorted((a, b) => a - b));
  expect(html).toContain('data-chart="waterfall"');
});
