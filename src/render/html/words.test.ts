import { expect, test } from 'vitest';
import { Breakable } from './words.js';

const html = (text: string): string => String(Breakable({ text }));

test('long names may break after their separators, and keep their text', () => {
  const name = 'metrics.output_token_count.successful';
  expect(html(name)).toBe('metrics.<wbr/>output_<wbr/>token_<wbr/>count.<wbr/>successful');
  expect(html(`of ${name}`).replaceAll('<wbr/>', '')).toBe(`of ${name}`);
  expect(html('aten::mm, 3.25 ms')).toBe('aten::mm, 3.25 ms');
});
