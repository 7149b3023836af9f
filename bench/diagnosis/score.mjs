// Grades the findings of `explain` for the planted faults in test/fixtures/diagnosis: node bench/diagnosis/score.mjs [--update] [--only fault,…]
// --update also writes the table into docs/reference/diagnosis-scores.md. --captures FOLDER reads archives and timings from there. --claims FILE
// writes the claims of twins that no measurement made true, for claims.py. Runs the sources without a build.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const { values } = parseArgs({
  options: {
    update: { type: 'boolean', default: false },
    only: { type: 'string' },
    captures: { type: 'string' },
    verbose: { type: 'boolean', default: false },
    claims: { type: 'string' },
  },
});
const scratch = mkdtempSync(join(tmpdir(), 'inferscope-score-'));
const table = join(scratch, 'table.txt');
const run = spawnSync(
  'npx',
  // Files are processed in sequence, because each adds to the table in the docs.
  [
    'vitest',
    'run',
    '--project',
    'score',
    '--no-file-parallelism',
    'src/advice/findings/planted-faults',
    'src/advice/findings/unseen-faults',
    'src/advice/findings/cpu-faults',
  ],
  {
    cwd: root,
    encoding: 'utf8',
    env: {
      ...process.env,
      DIAGNOSIS_TABLE: table,
      ...(values.update ? { DIAGNOSIS_UPDATE: '1' } : {}),
      ...(values.only ? { DIAGNOSIS_ONLY: values.only } : {}),
      ...(values.captures ? { DIAGNOSIS_CAPTURES: resolve(values.captures) } : {}),
      ...(values.verbose ? { DIAGNOSIS_VERBOSE: '1' } : {}),
      ...(values.claims ? { DIAGNOSIS_CLAIMS: resolve(values.claims) } : {}),
    },
  },
);
try {
  console.log(readFileSync(table, 'utf8'));
} catch {
  console.error(run.stdout + run.stderr);
}
rmSync(scratch, { recursive: true, force: true });
process.exitCode = run.status ?? 1;
