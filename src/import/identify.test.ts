import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { InferscopeError } from '../model/errors.js';
import { identify } from './identify.js';

const folder = 'test/fixtures/diagnosis';

test('for a session export, the error names the command that reads it', async () => {
  const path = join(
    folder,
    readdirSync(folder).find((name) => name.endsWith('.tgz'))!,
  );
  const error: unknown = await identify(path).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(InferscopeError);
  const { code, parts } = error as InferscopeError;
  expect(code).toBe('E_FORMAT_UNKNOWN');
  expect(parts.fix).toContain(`inferscope session import ${path}`);
});
