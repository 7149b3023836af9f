import process from 'node:process';
import { afterEach, expect, test, vi } from 'vitest';
import { InferscopeError } from '../model/errors.js';
import { checkSlurm } from './slurm-options.js';

afterEach(() => vi.unstubAllEnvs());

function codeOf(check: () => void): string | null {
  try {
    check();
    return null;
  } catch (error) {
    return error instanceof InferscopeError ? error.code : String(error);
  }
}

test('Slurm is looked for before anything is written, and only for --on slurm', () => {
  vi.stubEnv('PATH', '');
  expect(process.env['PATH']).toBe('');
  expect(codeOf(() => checkSlurm('slurm', {}))).toBe('E_TOOL_MISSING');
  expect(codeOf(() => checkSlurm('local', {}))).toBeNull();
});

test('options of jobs need --on slurm and closed quotes', () => {
  expect(codeOf(() => checkSlurm('local', { '--sbatch': '--mem=4G' }))).toBe('E_USAGE');
  expect(codeOf(() => checkSlurm('slurm', { '--sbatch': '"--mem=4G' }))).toBe('E_USAGE');
});
