// Checks rules about text in src/, of which the first is: code decides on ids and codes, never on its own English. No string method or regular
// expression reads a title, a reason or a note, and nothing is compared with a phrase. Text of other programs (logs, errors, reports) has no
// codes; the places that read it are listed. The other rules are at the end of this file.
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { parseSync, Visitor } from 'oxc-parser';

const proseField =
  '(?:why|reasons?|title|label|says|notes?|sentences?|caption|cause|evidence|hint|fix|source)';
const readMethod = '(?:includes|startsWith|endsWith|indexOf|lastIndexOf|match|matchAll|search|split)';
const phrase = `['"\`][^'"\`]*[\\w%.,:] [\\w$][^'"\`]*['"\`]`;
const readingPatterns = [
  new RegExp(`\\b${proseField}[!?)]*\\.${readMethod}\\(`),
  new RegExp(`\\.(?:test|exec)\\((?:[\\w?!]+\\.)*${proseField}[!)]`),
  new RegExp(`\\.(?:includes|startsWith|endsWith|indexOf)\\(${phrase}\\)`),
  new RegExp(`[!=]== ${phrase}`),
  /[sS]entence\w*\((?:[\w!]+\.)*text\)|withoutNumbers\(\w/,
];

/** Lines that may read text, as [file, part of the line]: it is text of another program, or a name that contains a space. */
const exceptions = [
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
  ['import/nsys/importers.ts', 'SQLite format 3'], // The first bytes of a file.
  ['import/vllm-log/server-stats.ts', 'Avg prompt throughput'], // A line of vLLM's log.
  ['llm/memory-forward-attention.ts', "family === 'Gemma 3'"], // A model family.
  ['llm/memory-forward.ts', 'family === '],
  ['llm/read-mixers.ts', "form === 'gated DeltaNet'"],
  ['model/metric-source.ts', 'source.startsWith('], // The code at the start of the column.
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

function report(message) {
  process.stderr.write(`${message}\n`);
  process.exitCode = 1;
}
const reportLines = (violations, problem) => {
  for (const { path, line, text } of violations) report(`src/${path}:${line} ${problem}: ${text}`);
};

const readingLines = lines.filter(({ text }) => readingPatterns.some((pattern) => pattern.test(text)));
const isException = ([file, part], { path, text }) => path === file && text.includes(part);
reportLines(
  readingLines.filter((line) => !exceptions.some((exception) => isException(exception, line))),
  'reads a sentence',
);
for (const exception of exceptions)
  if (!readingLines.some((line) => isException(exception, line)))
    report(`test/prose.mjs lists an exception that no line needs: ${exception.join(': ')}`);

// Whether a session has some content is decided in one module. Elsewhere artifacts are only written, or read by their subject.
const contentGuess = /kind === '(?:bench|load|memory|kernel)-plan'|hasArtifact\(|artifacts\.some\(/;
reportLines(
  lines.filter(({ path, text }) => path !== 'model/subjects.ts' && contentGuess.test(text)),
  'guesses what a session holds (model/subjects.ts)',
);

// Only the module of a kind of id (model/, vocabulary/) reads the parts of such an id; other modules call its functions.
const idParsing =
  /\b(?:id|scope|cause|bar|causes?Id)\b[)!?]*\.(?:split|startsWith|endsWith|match|replace\('[\w.]+', ''\))/;
reportLines(
  lines.filter(
    ({ path, text }) =>
      /^(?:facts|advice|compare|ask|views|render|record|cli|export)\//.test(path) && idParsing.test(text),
  ),
  'reads the parts of an id (model/bars.ts)',
);

// Only vocabulary/format.ts turns numbers into text, so that a quantity has the same digits everywhere. Number(…) does not count.
const writesNumber = 'writes a number itself (vocabulary/format.ts)';
const rounding =
  /(?<!Number\(.*)\.(?:toFixed|toPrecision|toExponential|toLocaleString)\(|\bIntl\.NumberFormat\b/;
reportLines(
  lines.filter(
    ({ path, text }) =>
      rounding.test(text) && path !== 'vocabulary/format.ts' && !path.startsWith('render/client/'),
  ),
  writesNumber,
);

// A template literal contains no number next to a unit, no rounded number and no plural: the formatter writes value and unit.
const units =
  '[nµum]?s|sec|min|h|[kKMGT]i?B(?:\\/s)?|B(?:\\/s)?|[kMG]?Hz|W|J|°C|[MGTP]?FLOPS?(?:\\/s)?|tok\\/s|req(?:uests)?\\/s|tokens(?:\\/s)?|bytes?|seconds|minutes|hours|days';
const unitNext = new RegExp(`^(?:%|[ \\u00a0-](?:%|(?:${units})(?![\\w/])))`);
const roundedPart = /^(?:Math\.(?:round|floor|ceil|trunc)|Number)\(/;
const pluralPart = /=== 1 \? ['"](?:\w*)['"] : ['"](?:\w*s)['"]$/;
const paths = new Set(lines.map((line) => line.path));
for (const path of paths) {
  const text = readFileSync(join(src, path), 'utf8');
  if (!text.includes('${') || path === 'vocabulary/format.ts') continue;
  new Visitor({
    TemplateLiteral({ expressions, quasis }) {
      for (const [index, { start, end }] of expressions.entries()) {
        const part = text.slice(start, end);
        if (unitNext.test(quasis[index + 1].value.cooked) || roundedPart.test(part) || pluralPart.test(part))
          report(`src/${path}:${text.slice(0, start).split('\n').length} ${writesNumber}: \${${part}}`);
      }
    },
  }).visit(parseSync(path, text).program);
}

// What people read says "stage"; "phase" is in names of columns and fields only, so in literals without a space or with SQL.
const saysPhase = /(?<!')\bphases?\b(?!')/i;
const sql = /\b(?:SELECT|FROM|JOIN|CASE|OR|coalesce)\b|, phase_id,/;
reportLines(
  lines.filter(({ text }) => /\b(?:head|title|what): '[Pp]hases?'/.test(text)),
  'says phase for stage',
);
for (const path of paths) {
  const text = readFileSync(join(src, path), 'utf8');
  if (!/phase/i.test(text)) continue;
  const check = (value, start) => {
    if (typeof value === 'string' && value.includes(' ') && saysPhase.test(value) && !sql.test(value))
      report(`src/${path}:${text.slice(0, start).split('\n').length} says phase for stage: ${value}`);
  };
  new Visitor({
    Literal: ({ value, start }) => check(value, start),
    TemplateLiteral: ({ quasis, start }) => check(quasis.map(({ value }) => value.cooked).join('…'), start),
  }).visit(parseSync(path, text).program);
}

// Sorting must not depend on the locale, so that a session always gives the same rows in the same order.
reportLines(
  lines.filter(({ text }) => /localeCompare\(/.test(text) && !/localeCompare\(.*, 'en'/.test(text)),
  "sorts by the machine's locale (use localeCompare(other, 'en'))",
);
