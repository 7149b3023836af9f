// Makes fixtures from captures: node bench/diagnosis/fixtures.mjs CAPTURES [--out test/fixtures/diagnosis]. CAPTURES has time/, and sessions/
// from sessions.mjs. Facts about the machine (absolute paths in commands, program output) are removed. Programs that are not in CAPTURES keep
// their fixtures, so that a few can be captured again. Their ORIGIN.md is written by hand.
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { create, extract } from 'tar';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { out: { type: 'string', default: join(root, 'test', 'fixtures', 'diagnosis') } },
});
const captures = positionals[0];
if (!captures) throw new Error('node bench/diagnosis/fixtures.mjs CAPTURES');
mkdirSync(values.out, { recursive: true });
for (const name of readdirSync(join(captures, 'sessions')).filter((file) => file.endsWith('.tgz')))
  await writeScrubbed(join(captures, 'sessions', name), join(values.out, name));

/** Copies the archive of a session without facts about the machine. */
async function writeScrubbed(from, to) {
  const folder = mkdtempSync(join(tmpdir(), 'inferscope-fixture-'));
  await extract({ file: from, cwd: folder });
  const [id] = readdirSync(folder);
  const manifest = join(folder, id, 'session.json');
  const session = JSON.parse(readFileSync(manifest, 'utf8'));
  const logs = session.data.artifacts.filter(({ kind }) => kind === 'stdout' || kind === 'stderr');
  for (const { path } of logs) rmSync(join(folder, id, path));
  session.data.artifacts = session.data.artifacts.filter((artifact) => !logs.includes(artifact));
  const text = JSON.stringify(session, null, 2)
    // The program's own folder, and result folders.
    .replaceAll(/"\/[^"]*?\/(bench\/diagnosis\/[^"]*)"/g, '"$1"')
    .replaceAll(/"(--output=|--export=)?\/[^"]*\/([^"/]+)"/g, '"$1$2"');
  writeFileSync(manifest, text);
  const digest = createHash('sha256').update(text).digest('hex');
  writeFileSync(`${manifest}.sha256`, `${digest}  session.json\n`);
  const rank = (file) => (file.endsWith('session.json') ? 0 : file.endsWith('.sha256') ? 1 : 2);
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .toSorted((a, b) => rank(a) - rank(b) || a.localeCompare(b));
  await create({ file: to, cwd: folder, gzip: true, portable: true, mtime: new Date(0) }, files);
  rmSync(folder, { recursive: true });
}

const path = join(values.out, 'timings.json');
const storedTimings = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).timings : [];
const newTimings = readdirSync(join(captures, 'time'))
  .filter((name) => name.endsWith('.json'))
  .map((name) => JSON.parse(readFileSync(join(captures, 'time', name), 'utf8')));
const timings = [
  ...storedTimings.filter(({ fault }) => !newTimings.some((timing) => timing.fault === fault)),
  ...newTimings,
];
// One line per program, so that a new capture changes one line.
const roundNumber = (_, value) => (typeof value === 'number' ? Number(value.toFixed(6)) : value);
const lines = timings
  .toSorted((a, b) => a.fault.localeCompare(b.fault))
  .map((timing) => JSON.stringify(timing, roundNumber));
writeFileSync(path, `{\n"timings": [\n${lines.join(',\n')}\n]}\n`);
process.stdout.write(`${timings.length} timings, ${readdirSync(values.out).length} files\n`);
