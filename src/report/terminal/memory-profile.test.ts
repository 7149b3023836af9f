import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { testMemory } from '../test-memory.js';
import { memorySummary } from './memory-profile.js';
import { textWidth } from './text.js';

const shown = (change: (profile: ReturnType<typeof testMemory>['data']['profile']) => void): string => {
  const made = testMemory();
  change(made.data.profile);
  const text = stripVTControlCharacters(memorySummary(made, 80));
  for (const line of text.split('\n')) expect(textWidth(line), line).toBeLessThanOrEqual(80);
  return text;
};

test('80 columns, however large a component is beside the total', () => {
  const text = shown(({ memory_breakdown: parts }) => {
    for (const one of parts.components) {
      one.bytes *= 100;
      one.gb *= 100;
    }
  });
  expect(text).toMatch(/ weights +1400\.0 GB +7000\.0 % +high .*█/);
  expect(shown(() => {})).toMatch(/ weights +14\.000 GB +70\.0 % +high +13\.480 GB +█{11}\n/);
});

test('where others were on the GPU, what came is of all of them', () => {
  const text = shown(({ metadata }) =>
    metadata.issues.push({ code: 'gpu_shared', text: 'gpu0 was shared.' }),
  );
  const flat = text.replaceAll(/\s+/g, ' ');
  expect(flat).toContain('2.000 GB after it, of all processes on the GPU.');
  expect(flat).toMatch(/GB in all, of all processes on the GPU /);
  expect(shown(() => {})).not.toContain('of all processes');
});
