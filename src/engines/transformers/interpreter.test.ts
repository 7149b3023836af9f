import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findPython, pythonCandidates } from './interpreter.js';

const query = { probe: '', hubId: null };
const refused = (fix: string) =>
  expect.objectContaining({
    code: 'E_ENGINE_MISSING',
    parts: expect.objectContaining({ fix: expect.stringContaining(fix) as string }) as unknown,
  }) as Error;

test('--python overrides INFERSCOPE_PYTHON, which overrides PATH', () => {
  expect(pythonCandidates('a', { INFERSCOPE_PYTHON: 'b' })).toEqual(['a']);
  expect(pythonCandidates(null, { INFERSCOPE_PYTHON: 'b' })).toEqual(['b']);
  expect(pythonCandidates(null, {})).toEqual(['python3', 'python']);
});

test('reports a Python that does not exist, and a file that is not a program', async () => {
  await expect(findPython(['/no/such/python'], ['torch'], query)).rejects.toThrow(refused('--python PATH'));
  await expect(findPython([process.execPath], ['torch'], query)).rejects.toThrow(refused('--python PATH'));
});

describe.skipIf(spawnSync('python3', ['-c', 'import venv']).status !== 0)('a Python without packages', () => {
  let folder: string;
  let python: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'inferscope-venv-'));
    python = join(folder, 'bin', 'python');
    execFileSync('python3', ['-m', 'venv', '--without-pip', folder]);
  }, 60_000);
  afterAll(() => rmSync(folder, { recursive: true }));

  test('is an error with the install command', { timeout: 60_000 }, async () => {
    await expect(findPython([python], ['torch', 'transformers'], query)).rejects.toThrow(
      refused(`${python} -m pip install torch transformers`),
    );
  });

  test(
    'is enough if no package is needed, also after a candidate that does not exist',
    { timeout: 60_000 },
    async () => {
      const environment = await findPython(['/no/such/python', python], [], query);
      expect(environment).toMatchObject({
        command: python,
        torch: null,
        packages: { torch: null },
        model: null,
      });
      expect(environment.version).toMatch(/^3\.\d+\.\d+$/);
    },
  );
});
