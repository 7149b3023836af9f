// Code decides on ids and codes, never on its own English: no string method or regular expression reads a title, a reason or a note, and
// nothing is compared with a phrase. Text of other programs (logs, errors, reports) has no codes; the places that read it are listed.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { parseSync, Visitor } from 'oxc-parser';

const prose = '(?:why|reasons?|title|label|says|notes?|sentences?|caption|cause|evidence|hint|fix|source)';
const reads = '(?:includes|startsWith|endsWith|indexOf|lastIndexOf|match|matchAll|search|split)';
const phrase = `['"\`][^'"\`]*[\\w%.,:] [\\w$][^'"\`]*['"\`]`;
const patterns = [
  new RegExp(`\\b${prose}[!?)]*\\.${reads}\\(`),
  new RegExp(`\\.(?:test|exec)\\((?:[\\w?!]+\\.)*${prose}[!)]`),
  new RegExp(`\\.(?:includes|startsWith|endsWith|indexOf)\\(${phrase}\\)`),
  new RegExp(`[!=]== ${phrase}`),
  /[sS]entence\w*\((?:[\w!]+\.)*text\)|withoutNumbers\(\w/,
];

/** Text of other programs, or a name that contains a space. */
const allowed = [
  ['facts/counters/stalls.ts', "reason.endsWith('_not_issued')"], // Names of ncu's metrics.
  ['advice/findings/rules/throttling.ts', "reason.includes('thermal')"], // NVML's names of reasons.
  ['facts/memory-profile/expected.ts', "includes('Explicitly set')"], // A line of vLLM's log.
  ['facts/trace/spread.ts', "includes('out of range')"], // DuckDB's error.
  ['ask/stored/words.ts', 'test(sentence) ? sentence'], // Adds a full stop.
  ['capture/run/hot-kernels.ts', 'includes('], // Columns of nsys stats.
  ['engines/model-files/find-model-files.ts', 'source'], // A path or URL.
  ['cli/validate-read.ts', 'source'], // A path.
  ['engines/onnx/decoder.ts', 'bad_alloc'], // ONNX Runtime's error.
  ['engines/vllm/place-model.ts', 'source'], // A path or hub id.
  ['engines/vllm/root-cause.ts', 'pattern.test(why)'], // vLLM's error.
  ['import/ncu/details-metrics.ts', ''], // Labels and sections of ncu.
  ['import/ncu/ncu-csv.ts', "includes('Kernel Name')"], // Columns of ncu.
  ['import/ncu/nvtx-path.ts', "'<default domain>'"], // ncu's word.
  ['import/nsys/importers.ts', 'SQLite format 3'], // Head of a file.
  ['import/vllm-log/server-stats.ts', 'Avg prompt throughput'], // A line of vLLM's log.
  ['llm/memory-forward-attention.ts', "family === 'Gemma 3'"], // Name of a family.
  ['llm/memory-forward.ts', 'family === '],
  ['llm/read-attention.ts', "family.name === 'Gemma 3n'"],
  ['llm/read-mixers.ts', "form === 'gated DeltaNet'"],
  ['model/metric-source.ts', 'source.startsWith('], // The code that the column begins with.
  ['session/session-files.ts', 'source.startsWith(scratch'], // A path.
  ['session/sql-check.ts', "'not implemented'"], // DuckDB's error.
];

const src = join(import.meta.dirname, '../src');
const lines = readdirSync(src, { recursive: true })
  .map((path) => path.replaceAll('\\', '/'))
  .filter((path) => /\.tsx?$/.test(path) && !/\.test\.tsx?$|(^|\/)test-[^/]*\.ts$/.test(path))
  .flatMap((path) =>
    readFileSync(join(src, path), 'utf8')
      .split('\n')
      .map((line, index) => ({ path, line: index + 1, text: line.trim() })),
  )
  .filter(({ text }) => !text.startsWith('//') && !text.startsWith('*'));
const found = lines.filter(({ text }) => patterns.some((one) => one.test(text)));
const isAllowed = ([file, part], { path, text }) => path === file && text.includes(part);
const read = found.filter((one) => !allowed.some((entry) => isAllowed(entry, one)));
const unused = allowed.filter((entry) => !found.some((one) => isAllowed(entry, one)));
for (const { path, line, text } of read)
  process.stderr.write(`src/${path}:${line} reads a sentence: ${text}\n`);
for (const [file, part] of unused)
  process.stderr.write(`test/prose.mjs lists what is gone: ${file}: ${part}\n`);

// Whether a session has some content is decided in one module. Elsewhere artifacts are only written, or read by their subject.
const planned = /kind === '(?:bench|load|memory|kernel)-plan'|hasArtifact\(|artifacts\.some\(/;
const guesses = lines.filter(({ path, text }) => path !== 'model/subjects.ts' && planned.test(text));
for (const { path, line, text } of guesses)
  process.stderr.write(`src/${path}:${line} guesses what a session holds (model/subjects.ts): ${text}\n`);
// Only the module of a kind of id (model/, vocabulary/) reads the parts of such an id; other modules call its functions.
const parsed =
  /\b(?:id|scope|cause|bar|causes?Id)\b[)!?]*\.(?:split|startsWith|endsWith|match|replace\('[\w.]+', ''\))/;
const parsesIds = lines.filter(
  ({ path, text }) =>
    /^(?:facts|advice|compare|ask|views|render|record|cli|export)\//.test(path) && parsed.test(text),
);
for (const { path, line, text } of parsesIds)
  process.stderr.write(`src/${path}:${line} reads the parts of an id (model/bars.ts): ${text}\n`);
// Only vocabulary/format.ts turns numbers into text, so that a quantity has the same digits everywhere. Number(…) does not count.
const rounds =
  /(?<!Number\(.*)\.(?:toFixed|toPrecision|toExponential|toLocaleString)\(|\bIntl\.NumberFormat\b/;
const writes = lines.filter(
  ({ path, text }) =>
    rounds.test(text) && path !== 'vocabulary/format.ts' && !path.startsWith('render/client/'),
);
for (const { path, line, text } of writes)
  process.stderr.write(`src/${path}:${line} writes a number itself (vocabulary/format.ts): ${text}\n`);
// A template literal contains no number next to a unit, no rounded number and no plural: the formatter writes value and unit.
const units =
  '[nµum]?s|sec|min|h|[kKMGT]i?B(?:\\/s)?|B(?:\\/s)?|[kMG]?Hz|W|J|°C|[MGTP]?FLOPS?(?:\\/s)?|tok\\/s|req(?:uests)?\\/s|tokens(?:\\/s)?|bytes?|seconds|minutes|hours|days';
const unitNext = new RegExp(`^(?:%|[ \\u00a0-](?:%|(?:${units})(?![\\w/])))`);
const roundedPart = /^(?:Math\.(?:round|floor|ceil|trunc)|Number)\(/;
const pluralPart = /=== 1 \? ['"](?:\w*)['"] : ['"](?:\w*s)['"]$/;
const bare = [];
for (const path of new Set(lines.map((one) => one.path))) {
  const text = readFileSync(join(src, path), 'utf8');
  if (!text.includes('${') || path === 'vocabulary/format.ts') continue;
  new Visitor({
    TemplateLiteral({ expressions, quasis }) {
      for (const [at, { start, end }] of expressions.entries()) {
        const part = text.slice(start, end);
        if (unitNext.test(quasis[at + 1].value.cooked) || roundedPart.test(part) || pluralPart.test(part))
          bare.push(`${path}:${text.slice(0, start).split('\n').length} \${${part}}`);
      }
    },
  }).visit(parseSync(path, text).program);
}
for (const one of bare) process.stderr.write(`src/${one} writes a number itself (vocabulary/format.ts)\n`);
// Sorting must not depend on the locale, so that a session always gives the same rows in the same order.
const localized = lines.filter(
  ({ text }) => /localeCompare\(/.test(text) && !/localeCompare\(.*, 'en'/.test(text),
);
for (const { path, line } of localized)
  process.stderr.write(`src/${path}:${line} orders by the machine's locale (localeCompare(other, 'en'))\n`);
if ([read, unused, guesses, writes, bare, localized].some((list) => list.length > 0)) process.exitCode = 1;
