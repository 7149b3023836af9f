import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { compareMemory, type ComparedSide } from '../compare/memory/compare.js';
import { readComparedProfile } from '../compare/memory/read-profile.js';
import { pageOfView } from '../render/html/view.js';
import { markdownView } from '../render/markdown.js';
import { terminalView } from '../render/terminal/view.js';
import { plainText, rawValue } from '../render/value.js';
import { hostileText } from './test-profile.js';
import type { Block, Table } from './block.js';
import { memoryCompareView } from './memory-compare.js';

const side = (name: string, label = name): ComparedSide => ({
  selector: name,
  kind: 'file',
  label,
  ...readComparedProfile(
    readFileSync(join('test', 'fixtures', 'memory-profiles-h200', `${name}.json`), 'utf8'),
    name,
  ),
});
const comparison = compareMemory(side('llama-2-7b-float16', hostileText), side('llama-3.1-8b-bfloat16'));
const view = memoryCompareView(comparison);
const isTable = (block: Block): block is Block & Table => block.type === 'table';
const row = (id: string, label: string) =>
  view.sections
    .find((section) => section.id === id)!
    .blocks.find(isTable)!
    .rows.find(({ cells }) => rawValue(cells[0]!) === label)!.cells;

test('components, points and latency show both sides, the signed change, and the confidence', () => {
  // 2 × 32 layers × 32 heads × 128 × 2 bytes × 4 sequences × 512 tokens; twice that in the second.
  const cache = row('components', 'KV cache');
  expect(cache.slice(1, 4).map(rawValue)).toEqual([2 ** 30 / 1e9, 2 ** 31 / 1e9, 2 ** 30 / 1e9]);
  expect(cache.map(plainText).map((text) => text.replaceAll('\u00a0', ' '))).toEqual([
    'KV cache',
    '1.074 GB',
    '2.147 GB',
    '+1.07 GB',
    '+100 %',
    'high',
  ]);
  expect(rawValue(row('components', 'CUDA context')[3]!)).toBeCloseTo(-(2 ** 21) / 1e9, 12);
  expect(row('points', 'baseline')[4]).toEqual({ missing: 'the base is 0' });
  expect(markdownView(view, { level: 3 }).replaceAll('\u00a0', ' ')).toContain('– %: the base is 0');
  expect(row('points', 'peak').slice(1).map(rawValue)).toEqual([
    comparison.data.points[2]!.base_gb,
    comparison.data.points[2]!.now_gb,
    comparison.data.points[2]!.change_gb,
    comparison.data.points[2]!.change_share,
  ]);
  expect(row('latency', 'mean TTFT').slice(1, 3)).toMatchObject([{ unit: 'ms' }, { unit: 'ms' }]);
  expect(row('differences', 'batch size')).toEqual(['batch size', '4', '16']);
});

test.each([
  [1, 80],
  [2, 80],
  [2, 120],
] as const)('level %i fits %i columns', (level, width) => {
  const lines = terminalView(view, { width, level }).split('\n');
  expect(lines.filter((line) => [...line].length > width)).toEqual([]);
  if (level === 1) expect(lines.length).toBeLessThanOrEqual(30);
});

test('names of files cannot inject anything on a page or in Markdown', () => {
  expect(pageOfView(view, { clientScript: '' })).not.toContain(`>${hostileText}`);
  expect(markdownView(view)).not.toContain(hostileText);
});
