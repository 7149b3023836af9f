import { expect, test } from 'vitest';
import { ensureSameTime } from './same-time.js';

const ns = (day: string) => BigInt(Date.parse(day)) * 1_000_000n;

test('recordings months apart cannot be of one run; those days apart, or without a time, can', () => {
  const zero = ns('2026-11-21');
  expect(() => ensureSameTime('/traces/old.json', ns('2025-07-18'), zero)).toThrow(
    expect.objectContaining({
      code: 'E_USAGE',
      message: expect.stringContaining('old.json') as string,
    }) as Error,
  );
  expect(() => ensureSameTime('new.json', zero, ns('2025-07-18'))).toThrow();
  for (const near of [zero, ns('2026-11-01'), null])
    expect(() => ensureSameTime('x', near, zero)).not.toThrow();
});
