import { expect, test } from 'vitest';
import { requireMemory } from './memory-need.js';

const shape = { batchSize: 1, inputLen: 512, outputLen: 32 };
const refusal = (num_parameters: number | null, dtype = 'float32', weights = 'random') => {
  try {
    requireMemory(
      { name: 'm', config: {}, weights, dtype, num_parameters, weight_bytes: 2 ** 60 } as never,
      shape,
    );
  } catch (error) {
    return error as { code: string; parts: { what: string; why: string; fix: string } };
  }
  throw new Error('not refused');
};

test('rejects weights that do not fit; suggests int4 only if it can fit', () => {
  const { code, parts } = refusal(2 ** 58);
  expect(code).toBe('E_OUT_OF_MEMORY');
  // The shape is not the reason.
  expect(parts.what + parts.why).not.toContain('512');
  expect(parts.fix).not.toContain('int4');
  expect(refusal(2 ** 20).parts.fix).toContain('--dtype int4');
  expect(refusal(2 ** 20, 'int4').parts.fix).not.toContain('int4');
  expect(refusal(2 ** 20, 'float32', 'trained').parts.fix).not.toContain('int4');
  expect(refusal(null).parts.fix).not.toContain('int4');
});
