import { expect, test } from 'vitest';
import { barCountNoun, barWords } from './bars.js';

test.each([
  ['exposed_copy.htod_pageable', 'exposed H2D copies (pageable)'],
  ['exposed_copy.dtoh_pinned', 'exposed D2H copies (pinned)'],
  ['exposed_copy.htoh_pageable', 'exposed host copies (pageable)'],
  ['exposed_copy.ptop', 'exposed P2P copies'],
  ['exposed_copy.memset', 'exposed memset'],
])('%s: each kind of copy that a timeline records has a label', (id, label) => {
  expect(barWords(id).label).toBe(label);
});

test('memsets and opaque graphs are not counted as copies and kernels', () => {
  expect(barCountNoun('kernels.graph', false)[1]).toBe('graphs');
  expect(barCountNoun('exposed_copy.memset', false)[1]).toBe('memsets');
  expect(barCountNoun('exposed_copy.dtoh_pinned', false)[1]).toBe('copies');
});
