import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parquetDamage } from './parquet-damage.js';
import { testFolder } from './test-folder.js';

const scratch = testFolder();

test.each([
  ['no such file', null],
  ['a chunk of another build', "import './no-such-chunk.js';"],
])('a child that cannot start is our fault, not damage: %s', async (name, source) => {
  const entry = join(scratch, `${name}.mjs`);
  if (source !== null) writeFileSync(entry, source);
  await expect(parquetDamage(['any.parquet'], entry)).rejects.toMatchObject({
    code: 'E_INTERNAL',
    exitCode: 70,
    parts: { what: expect.stringContaining(entry) },
  });
});
