// Captures → fixtures: node bench/diagnosis/fixtures.mjs CAPTURES [--out test/fixtures/diagnosis]. CAPTURES holds time/ and sessions/ (sessions.mjs).
// Programs that are not in CAPTURES keep their fixtures: a few can be captured anew. ORIGIN.md beside them is written by hand.
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { out: { type: 'string', default: join(root, 'test', 'fixtures', 'diagnosis') } },
});
const captures = positionals[0];
if (!captures) throw new Error('node bench/diagnosis/fixtures.mjs CAPTURES');
mkdirSync(values.out, { recursive: true });
for (const name of readdirSync(join(captures, 'sessions')).filter((one) => one.endsWith('.tgz')))
  copyFileSync(join(captures, 'sessions', name), join(values.out, name));

const path = join(values.out, 'timings.json');
const kept = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).timings : [];
const read = readdirSync(join(captures, 'time'))
  .filter((name) => name.endsWith('.json'))
  .map((name) => JSON.parse(readFileSync(join(captures, 'time', name), 'utf8')));
const timings = [...kept.filter(({ fault }) => !read.some((one) => one.fault === fault)), ...read];
// One program a line: a capture of one changes one line. Times to the nanosecond.
const rounded = (_, value) => (typeof value === 'number' ? Number(value.toFixed(6)) : value);
const lines = timings
  .toSorted((a, b) => a.fault.localeCompare(b.fault))
  .map((one) => JSON.stringify(one, rounded));
writeFileSync(path, `{\n"timings": [\n${lines.join(',\n')}\n]}\n`);
process.stdout.write(`${timings.length} timings, ${readdirSync(values.out).length} files\n`);
