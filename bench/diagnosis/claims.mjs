// Makes the fixture of measured claims: node bench/diagnosis/claims.mjs FILE… , the claims.jsonl of claims.py and engine_claims.py; a later line
// replaces an earlier one of the same claim.
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const measured = new Map();
for (const path of process.argv.slice(2)) {
  for (const line of readFileSync(path, 'utf8').split('\n').filter(Boolean)) {
    const claim = JSON.parse(line);
    if (claim.failed === undefined)
      measured.set([claim.program, claim.rule, claim.stage, claim.variant].join(' '), claim);
  }
}
const lines = [...measured.entries()]
  .toSorted(([a], [b]) => a.localeCompare(b))
  .map(([, { program, rule, stage, variant, pairs }]) =>
    JSON.stringify({
      program,
      rule,
      stage,
      variant,
      pairs: pairs.map(({ before, after }) => ({ before, after })),
    }),
  );
writeFileSync(
  join(root, 'test', 'fixtures', 'diagnosis-claims', 'claims.json'),
  `{\n"claims": [\n${lines.join(',\n')}\n]}\n`,
);
process.stdout.write(`${lines.length} measurements\n`);
