import type { Document, Issue } from '../../model/document.js';
import type { SweepResult, SweepRun } from '../../model/documents/sweep.js';
import { formatBytes, formatCount, noValue } from '../format.js';
import {
  doubtsOf,
  figureName,
  figureText,
  parameterName,
  secondsText,
  shownFiguresOf,
  shownParameters,
  shownValue,
  sweepCounts,
  sweepOutcomeWords,
} from '../sweep-words.js';
import { shellWord } from '../../model/shell.js';
import { colour } from './colour.js';
import { columnsWithin, fitsWithin } from './sweep-columns.js';
import { textTable } from './table.js';
import { hanging, inert, readingWidth, withPlainSpaces } from './text.js';

const right = (head: string) => ({ head, align: 'right' as const });

/** What a sweep came to: how its runs ended, their main figures, what failed and why. Readable without colour. */
export function sweepText({ data, issues, tool_version }: Document<SweepResult>, columns: number): string {
  const width = readingWidth(columns);
  const took = data.runs.reduce((sum, run) => sum + (run.duration_s ?? 0), 0);
  const lines = [
    `inferscope ${tool_version} · sweep ${data.name ?? data.stamp} · ${formatCount(data.runs.length)} runs`,
    ...hanging('  ', `${sweepCounts(data.runs)} · ${secondsText(took)} in all`, width),
    '',
    ...shared(data, width),
    ...resultLines(data, width),
    ...failures(data.runs, width),
    ...doubts(data.runs, issues, width),
  ];
  return withPlainSpaces(lines.join('\n'));
}

/** What all runs have in common, once, instead of in a column each. */
function shared(data: SweepResult, width: number): string[] {
  const shown = new Set(shownParameters(data));
  const rest = Object.entries(data.runs[0]?.parameters ?? {}).filter(
    ([name, value]) => !shown.has(name) && value !== null,
  );
  if (rest.length === 0) return [];
  const words = rest.map(([name, value]) => `${parameterName(name)} ${inert(String(value))}`).join(', ');
  return [...hanging('  all: ', words, width), ''];
}

/** With as many figures as there is room for; the CSV has the rest. */
function resultLines(data: SweepResult, width: number): string[] {
  const figures = shownFiguresOf(data);
  const first = figures.slice(0, 1);
  const { parameters, lines } = columnsWithin(data, width, {
    table: (some) => tableOf(data, some, first, width),
    where: 'the CSV',
  });
  let shown = figures.length;
  while (shown > 1 && !fitsWithin(tableOf(data, parameters, figures.slice(0, shown), width), width)) shown--;
  const left = figures.slice(shown).map(figureName);
  return [
    ...lines,
    ...(lines.length > 0 ? [''] : []),
    tableOf(data, parameters, figures.slice(0, shown), width),
    ...(left.length > 0
      ? ['', ...hanging('  ', `In the CSV and the report too: ${left.join(', ')}.`, width)]
      : []),
  ];
}

function tableOf(
  data: SweepResult,
  parameters: readonly string[],
  figures: readonly string[],
  width: number,
): string {
  const labelled = data.runs.some((run) => run.figures.length > 1);
  const rows = data.runs.flatMap((run) =>
    (run.figures.length > 0 ? run.figures : [{ label: null, values: {} as Record<string, number> }]).map(
      ({ label, values }, index) => [
        index === 0 ? String(run.number) : '',
        ...parameters.map((name) => (index === 0 ? inert(shownValue(name, run.parameters[name])) : '')),
        ...(labelled ? [inert(label ?? '')] : []),
        ...figures.map((name) => figureText(name, values[name])),
        index === 0 ? secondsText(run.duration_s) : '',
        index === 0 ? outcomeText(run) : '',
      ],
    ),
  );
  return textTable(
    [
      right('run'),
      ...parameterColumns(data, parameters, !labelled),
      ...(labelled ? [{ head: 'point', flexible: true }] : []),
      ...figures.map((name) => right(figureName(name))),
      right('took'),
      { head: '' },
    ],
    rows,
    { width },
  );
}

/** Texts left and numbers right; the first text may be cut where there is no room. */
function parameterColumns({ runs }: SweepResult, parameters: readonly string[], cut: boolean) {
  const texts = parameters.map((name) => runs.some((run) => typeof run.parameters[name] === 'string'));
  return parameters.map((name, index) => ({
    head: parameterName(name),
    align: texts[index] ? ('left' as const) : ('right' as const),
    flexible: cut && index === texts.indexOf(true),
  }));
}

function outcomeText({ outcome, attempts }: SweepRun): string {
  const words = `${sweepOutcomeWords[outcome]}${attempts > 1 ? ` (try ${attempts})` : ''}`;
  return outcome === 'failed' || outcome === 'timed_out' || outcome === 'partial' ? colour.red(words) : words;
}

function failures(runs: readonly SweepRun[], width: number): string[] {
  const failed = runs.filter(({ failure }) => failure !== null);
  if (failed.length === 0) return [];
  return [
    '',
    `  ${colour.bold('What failed')}`,
    ...failed.flatMap(({ number, label, failure, log }) => [
      ...hanging(`  ${number}  `, `${inert(label)}: ${inert(failure!.what)} (${failure!.code})`, width),
      ...hanging('     ', inert(failure!.why), width),
      ...hanging('     ', `${inert(failure!.fix)}${log ? ` Log: ${inert(log)}` : ''}`, width),
    ]),
  ];
}

function doubts(runs: readonly SweepRun[], issues: readonly Issue[], width: number): string[] {
  const doubts = doubtsOf(runs);
  if (doubts.length + issues.length === 0) return [];
  return [
    '',
    `  ${colour.bold('To know before trusting these figures')}`,
    ...issueLines(issues, width),
    ...doubts.flatMap(({ numbers, text }) =>
      hanging('  ', `${numbers.length > 1 ? 'runs' : 'run'} ${rangesText(numbers)}: ${inert(text)}`, width),
    ),
  ];
}

/** Of the plan, before any run: keys of a config that its family does not read. */
const issueLines = (issues: readonly Issue[], width: number): string[] =>
  issues.flatMap(({ text }) => hanging('  note: ', inert(text), width));

/** 1-3, 5 */
function rangesText(numbers: readonly number[]): string {
  const ranges: [number, number][] = [];
  for (const number of numbers) {
    const last = ranges.at(-1);
    if (last && last[1] === number - 1) last[1] = number;
    else ranges.push([number, number]);
  }
  return ranges.map(([from, to]) => (from === to ? String(from) : `${from}-${to}`)).join(', ');
}

/** What `--dry-run` shows: commands as they would be typed, time, and what will not fit. */
export function sweepPlanText(
  { data, issues }: Document<SweepResult>,
  columns: number,
  program: readonly string[],
): string {
  const width = readingWidth(columns);
  const left = data.runs.filter(({ outcome }) => outcome === 'pending' || outcome === 'interrupted');
  const seconds = left.reduce((sum, run) => sum + run.expected.seconds, 0);
  const bases = [...new Set(left.map(({ expected }) => expected.basis))];
  const misfits = left.filter(({ expected }) => expected.fits === false);
  const unknown = left.filter(({ expected }) => expected.fits === null);
  const done = data.runs.length - left.length;
  const planTable = (shown: readonly string[]) =>
    textTable(
      [
        right('run'),
        ...parameterColumns(data, shown, true),
        right('about'),
        right('needs'),
        right('of'),
        { head: '' },
      ],
      left.map(({ number, parameters: own, expected }) => [
        String(number),
        ...shown.map((name) => inert(shownValue(name, own[name]))),
        secondsText(expected.seconds),
        expected.memory_bytes === null ? noValue : formatBytes(expected.memory_bytes),
        expected.capacity_bytes === null ? noValue : formatBytes(expected.capacity_bytes),
        expected.fits === false ? colour.red('will not fit') : expected.fits ? 'fits' : 'not known',
      ]),
      { width },
    );
  const { parameters, lines } = columnsWithin(data, width, { table: planTable, where: 'each command below' });
  const reasons = [...new Set(unknown.map(({ expected }) => expected.why))];
  return withPlainSpaces(
    [
      `${formatCount(left.length)} runs${done > 0 ? `, ${done} more are finished` : ''}, about ${secondsText(seconds)}`,
      ...bases.flatMap((basis) => hanging('  ', `time: ${basis}`, width)),
      '',
      ...lines,
      ...(lines.length > 0 ? [''] : []),
      planTable(parameters),
      ...(misfits.length > 0
        ? [
            '',
            ...hanging(
              '  ',
              `${formatCount(misfits.length)} will not fit: run ${rangesText(misfits.map(({ number }) => number))}. ${misfits[0]!.expected.why}`,
              width,
            ),
          ]
        : []),
      ...(unknown.length > 0
        ? ['', ...reasons.slice(0, 3).flatMap((why) => hanging('  fit not known: ', inert(why), width))]
        : []),
      ...(issues.length > 0 ? ['', ...issueLines(issues, width)] : []),
      '',
      ...left.map((run) => commandText([...program, ...run.arguments])),
    ].join('\n'),
  );
}

/** A command line that a shell takes as it is; a profile's `<stamp>` is the moment it is run. */
export const commandText = (words: readonly string[]): string => words.map(stampedWord).join(' ');

function stampedWord(word: string): string {
  const [before, after] = word.split('<stamp>');
  if (after !== undefined && !/["$`\\!]/.test(word)) return `"${before}$(date -u +%Y%m%d-%H%M%S)${after}"`;
  return shellWord(word);
}
