import process from 'node:process';
import { expect, test } from 'vitest';
import { atExit } from './at-exit.js';

test('many actions share one listener', () => {
  const before = process.listenerCount('exit');
  const undo = Array.from({ length: 20 }, () => atExit(() => {}));
  expect(process.listenerCount('exit')).toBe(before);
  for (const restore of undo) restore();
});
