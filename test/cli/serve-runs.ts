import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { fixture } from './capture-files.js';
import { inferscope, type CliResult, type TestSetup } from './run-cli.js';

/** Imports runs of vllm bench serve with `tpotFactor` times the fixture's TPOTs, varied by a few percent, as one session. */
export function importServeRuns(
  setup: TestSetup,
  { name, tpotFactor, runs }: { name: string; tpotFactor: number; runs: number },
): CliResult {
  const recorded = readFileSync(fixture('benchmark-results-from-schema/vllm-serve.json'), 'utf8');
  const paths = Array.from({ length: runs }, (_, run) => {
    const figures = JSON.parse(recorded) as Record<string, number>;
    const scatter = 1 + 0.01 * ((run * 7) % 5);
    for (const key of Object.keys(figures))
      if (key.endsWith('_ms')) figures[key]! *= scatter * (key.includes('tpot') ? tpotFactor : 1);
    const path = join(setup.scratch, `${name}-${run}.json`);
    writeFileSync(path, JSON.stringify(figures));
    return path;
  });
  const result = inferscope(setup, ['import', ...paths, '--name', name, '--quiet']);
  expect(result.status, result.stderr).toBe(0);
  return result;
}
