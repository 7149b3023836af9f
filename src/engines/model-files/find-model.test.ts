import { expect, test } from 'vitest';
import { findModel } from './find-model.js';

test('a tuned model has the dimensions of its bundled base, offline', async () => {
  const { name, config } = await findModel('ibm-granite/granite-3.3-8b-instruct');
  expect(name).toContain('granite-3.3-8b');
  expect(config).toMatchObject({ hidden_size: 4096, vocab_size: 49159 });
});

test('rejects an unknown name without guessing from its words', async () => {
  const refused = findModel('jamba-1.5-mini');
  await expect(refused).rejects.toMatchObject({
    code: 'E_MODEL_NOT_FOUND',
    parts: { fix: expect.not.stringContaining('jamba') as unknown },
  });
});
