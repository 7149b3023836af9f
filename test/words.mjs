// Plain English: a short list of words that this project does not use, over strings, comments and identifiers (told, toldRows, nothingTold).
// words.json has how many each folder still has; the counts may only shrink.
//
//   node test/words.mjs [--update | FOLDER]      --update lowers the limits to the current counts; FOLDER lists the words found there
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';

const words = [
  'told|tells|are told|gravest|beside|reckon(?:s|ed|ing)?|mend(?:s|ed|ing)?',
  'whose|thereof|likewise|meanwhile',
  '(?:tokens|bytes|ms|µs|kernels|launches) an? (?:second|token|step|sequence|row|layer|launch|call|request)',
  'held down|nothing hides|beyond their need|times less|stands in(?! for)|stand in(?! for)|is no (?:way|share|reason)',
].join('|');
const pattern = new RegExp(`(?<![a-z])(?:${words})(?![a-z])`, 'gi');
/** A comment that starts with "Of": a fragment without a noun. */
const opener = /^\s*(?:\/\*\*|\*|\/\/|#|""") ?Of\b/g;

/** Parts of files that are not checked: [file, pattern]. */
const exceptions = [['test/words.mjs', /[^]*/g]];

const top = join(import.meta.dirname, '..');
const limitsFile = join(top, 'test/words.json');
const skipped = /(^|\/)(?:node_modules|fixtures|golden|dist|__pycache__)\//;
const within = (folder) =>
  readdirSync(join(top, folder), { recursive: true }).map(
    (path) => `${folder}/${path.replaceAll('\\', '/')}`,
  );
const paths = [...readdirSync(top), ...['src', 'python', 'test', 'bench', 'docs', 'examples'].flatMap(within)]
  .filter((path) => /\.(?:tsx?|mjs|py|md)$/.test(path) && !skipped.test(path))
  .toSorted();

/** The folder in which a file is counted: src/facts, docs; `.` for files at the top. */
const folderOf = (path) =>
  path.includes('/')
    ? path
        .split('/')
        .slice(0, path.startsWith('src/') ? 2 : 1)
        .join('/')
    : '.';
const textOf = (path) =>
  exceptions
    .filter(([file]) => file === path)
    .reduce((text, [, part]) => text.replace(part, ''), readFileSync(join(top, path), 'utf8'));
/** Splits identifiers into words (`toldRows`). */
const splitIdentifiers = (line) => line.replace(/([a-z0-9])(?=[A-Z])|_/g, '$1 ');
const found = paths.flatMap((path) =>
  textOf(path)
    .split('\n')
    .flatMap((line, index) =>
      [...splitIdentifiers(line).matchAll(pattern), ...line.matchAll(opener)].map(([word]) => ({
        folder: folderOf(path),
        text: `${path}:${index + 1} ${word}: ${line.trim().slice(0, 160)}`,
      })),
    ),
);
const counts = {};
for (const { folder } of found) counts[folder] = (counts[folder] ?? 0) + 1;

const limits = JSON.parse(readFileSync(limitsFile, 'utf8'));
const argument = process.argv[2];
const linesIn = (folder) => found.filter((match) => match.folder === folder).map(({ text }) => text);
if (argument === '--update') {
  const lowered = Object.entries(limits)
    .map(([folder, limit]) => [folder, Math.min(limit, counts[folder] ?? 0)])
    .filter(([, limit]) => limit > 0);
  writeFileSync(limitsFile, `${JSON.stringify(Object.fromEntries(lowered), null, 2)}\n`);
} else if (argument !== undefined) {
  process.stdout.write(linesIn(argument).join('\n') + '\n');
} else
  for (const [folder, count] of Object.entries(counts)) {
    const limit = limits[folder] ?? 0;
    if (count <= limit) continue;
    process.exitCode = 1;
    process.stderr.write(`${folder}: ${count} of the words listed in test/words.mjs, limit ${limit}:\n`);
    process.stderr.write(`${linesIn(folder).slice(0, 20).join('\n')}\n`);
  }
