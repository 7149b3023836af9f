import type { Document } from '../model/document.js';
import type { SweepResult, SweepRun } from '../model/documents/sweep.js';
import { shellWord } from '../model/shell.js';
import { parameterLabel } from '../vocabulary/sweep.js';
import type { Table, View } from './block.js';
import { rangesText } from './ranges.js';
import { formatDuration, plural } from '../vocabulary/format.js';
import { parametersOf, parameterValue, seconds, whyNoFigure } from './sweep-columns.js';
import { type ColumnOf, tableOf, withoutConstantColumns } from './table-of.js';

const number = { numeric: true } as const;

/** `sweep --dry-run`: expected time, runs that will not fit, and the commands as typed after `program`. */
export function sweepPlanView(document: Document<SweepResult>, program: readonly string[]): View {
  const { data, issues } = document;
  const remaining = data.runs.filter(({ outcome }) => outcome === 'pending' || outcome === 'interrupted');
  const finished = data.runs.length - remaining.length;
  const misfits = remaining.filter(({ expected }) => expected.fits === false);
  const bases = [...new Set(remaining.map(({ expected }) => expected.basis))];
  const parameters: ColumnOf<SweepRun>[] = parametersOf(data).map((name, index, { length }) => ({
    id: name,
    head: parameterLabel(name),
    numeric: remaining.every((run) => typeof run.parameters[name] !== 'string'),
    ...(index === 0 ? {} : { drop: length - index }),
    cell: (run) => parameterValue(name, run.parameters[name]),
  }));
  const { columns, constants } = withoutConstantColumns(parameters, remaining, data.varied, { single: true });
  return {
    command: 'sweep --dry-run',
    title: data.name ?? data.stamp,
    document,
    session: { id: null, started_at: data.started_at },
    lead: [
      {
        type: 'text',
        text: [
          `${finished > 0 ? `${remaining.length} of ${plural(remaining.length + finished, 'run')} left` : plural(remaining.length, 'run')}, estimated time `,
          formatDuration(remaining.reduce((sum, { expected }) => sum + expected.seconds, 0)),
        ],
      },
      {
        type: 'facts',
        items: [
          ...bases.map((basis) => ({ name: 'estimated from', text: basis })),
          ...(constants.length > 0 ? [{ name: 'all', text: constants }] : []),
        ],
      },
      planTable('Estimates', remaining, columns),
      ...(misfits.length > 0 ? [{ type: 'text', text: misfitText(misfits) } as const] : []),
      { type: 'issues', issues },
      { type: 'heading', text: 'Commands' },
      { type: 'lines', text: remaining.map((run) => commandText([...program, ...run.arguments])).join('\n') },
    ],
    sections: [],
  };
}

const misfitText = (misfits: readonly SweepRun[]): string =>
  `Does not fit: run ${rangesText(misfits.map((run) => run.number))}. ${misfits[0]!.expected.why}`;

export const tookColumn: ColumnOf<SweepRun> = {
  id: 'duration',
  head: 'took',
  ...number,
  cell: (run) => (run.duration_s === null ? { missing: whyNoFigure(run) } : seconds(run.duration_s)),
};

/** Expected and measured time and memory of runs. */
export const planTable = (
  title: string,
  runs: readonly SweepRun[],
  configuration: readonly ColumnOf<SweepRun>[],
): Table =>
  tableOf(
    title,
    [
      { id: 'run', head: 'run', ...number, cell: (run) => ({ count: run.number }) },
      ...configuration,
      {
        id: 'expected',
        head: 'estimate',
        ...number,
        cell: ({ expected }) => seconds(expected.seconds),
      },
      ...(runs.every(({ duration_s: seconds }) => seconds === null) ? [] : [tookColumn]),
      {
        id: 'needed',
        head: 'needs',
        ...number,
        cell: ({ expected: { memory_bytes: n, why } }) =>
          n === null ? { missing: why } : { n: n / 1e9, unit: 'GB' },
      },
      {
        id: 'capacity',
        head: 'capacity',
        ...number,
        cell: ({ expected: { capacity_bytes: n, why } }) =>
          n === null ? { missing: why } : { n: n / 1e9, unit: 'GB' },
      },
      {
        id: 'fits',
        head: 'fit',
        cell: ({ expected: { fits, why } }) =>
          fits === false ? { text: 'does not fit', tone: 'fault' } : fits ? 'fits' : { missing: why },
      },
    ],
    runs,
  );

/** A command line that can be pasted into a shell; `<stamp>` in a file name becomes the time of the run. */
export const commandText = (words: readonly string[]): string => words.map(stampWord).join(' ');

function stampWord(word: string): string {
  const [before, after] = word.split('<stamp>');
  if (after !== undefined && !/["$`\\!]/.test(word)) return `"${before}$(date -u +%Y%m%d-%H%M%S)${after}"`;
  return shellWord(word);
}
