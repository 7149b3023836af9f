import type { JsonObject } from './metric-list.js';
import { unreadable } from './result-text.js';

/** Header line of `-o csv`: these columns are in all versions. */
const csvHead = /^build_commit,.*\bn_prompt,n_gen,.*\bavg_ts,/;
/** Header line of `-o md`. */
const markdownHead = /^\| *model *\|.*\| *test *\| *t\/s *\|/;

export function isTestTable(text: string): boolean {
  const start = text.trimStart();
  return csvHead.test(start) || markdownHead.test(start);
}

/**
 * Tests of a table, with the field names of `-o json`.
 * @throws E_TRACE_FILE if a line is not a test with the columns of the header, or there is none
 */
export function testsOf(text: string, path: string): JsonObject[] {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const tests = csvHead.test(lines[0]!) ? fromCsv(lines, path) : fromMarkdown(lines, path);
  if (tests.length === 0) throw unreadable(path, 'It contains no test; it may be cut off.');
  return tests;
}

const countColumns = new Set(['n_prompt', 'n_gen', 'n_depth', 'n_threads', 'n_gpu_layers', 'build_number']);
const isNumericColumn = (name: string) => countColumns.has(name) || /^(avg|stddev)_(ns|ts)$/.test(name);

/** Fields are quoted, a quote in one is doubled (llama-bench.cpp). */
function fromCsv([head, ...lines]: string[], path: string): JsonObject[] {
  const names = head!.split(',');
  return lines.map((line, index) => {
    const fields = [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^",]*))/g)].map(
      ([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain ?? '',
    );
    if (fields.length !== names.length) throw unreadable(path, `Line ${index + 2} is cut off.`);
    return Object.fromEntries(
      names.map((name, i) => [name, isNumericColumn(name) ? Number(fields[i]) : fields[i]!]),
    );
  });
}

/** The t/s column is `mean ± deviation` with two decimals; `test` is pp512, tg128 or pp512+tg128, with ` @ d` its depth. */
function fromMarkdown([head, , ...lines]: string[], path: string): JsonObject[] {
  const cellsOf = (line: string) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim());
  const names = cellsOf(head!);
  const build = lines.map((line) => /^build: (\S+) \((\d+)\)/.exec(line)).find(Boolean);
  return lines
    .filter((line) => line.startsWith('|'))
    .map((line) => {
      const fields = cellsOf(line);
      const cell = (name: string) => fields[names.indexOf(name)];
      const test = /^(?:pp(\d+))?\+?(?:tg(\d+))?(?: @ d(\d+))?$/.exec(cell('test') ?? '');
      const rate = /^([\d.]+) ± ([\d.]+)$/.exec(cell('t/s') ?? '');
      if (fields.length !== names.length || !test || !rate)
        throw unreadable(path, `"${line}" is not a test.`);
      const number = (value: string | undefined) => (value === undefined ? null : Number(value));
      return {
        n_prompt: number(test[1]) ?? 0,
        n_gen: number(test[2]) ?? 0,
        n_depth: number(test[3]) ?? 0,
        avg_ts: number(rate[1]),
        stddev_ts: number(rate[2]),
        model_type: cell('model'),
        backends: cell('backend'),
        n_threads: number(cell('threads')),
        n_gpu_layers: number(cell('ngl')),
        ...(build ? { build_commit: build[1], build_number: Number(build[2]) } : {}),
      };
    });
}
