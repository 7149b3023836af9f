import type { Document, Issue } from '../model/document.js';
import type { SweepFailure, SweepFigures, SweepResult, SweepRun } from '../model/documents/sweep.js';
import { plural } from '../vocabulary/format.js';
import { withoutEnd } from '../vocabulary/sentence.js';
import { figureLabel, runOutcomeLabels, parameterLabel } from '../vocabulary/sweep.js';
import type { Block, Part, Section, Text, Value, View } from './block.js';
import { figureValue, parametersOf, parameterValue, seconds, shownFiguresOf } from './sweep-columns.js';
import { rangesText } from './ranges.js';
import { mapChart, type SweepMap, sweepMaps } from './sweep-maps.js';
import { commandText, planTable, tookColumn } from './sweep-plan.js';
import { type ColumnOf, tableOf, withoutConstantColumns } from './table-of.js';

const number = { numeric: true } as const;

/**
 * How the runs of a sweep ended, their main figures, and failures with their reasons.
 * @param reported the failure that another message states
 * @param folder the sweep's folder, relative to the reader's
 */
export function sweepView(
  document: Document<SweepResult>,
  { reported = null, folder = '' }: { reported?: SweepFailure | null; folder?: string } = {},
): View {
  const { data, issues } = document;
  const { name, stamp, runs, started_at } = data;
  return {
    command: 'sweep',
    title: `${name ?? stamp} · ${plural(runs.length, 'run')}`,
    document,
    session: { id: stamp, started_at },
    lead: [{ type: 'text', text: outcomeText(data, reported !== null) }],
    sections: [
      { id: 'runs', title: 'Runs', untitled: true, blocks: runBlocks(data) },
      { id: 'maps', title: 'Maps', level: 3 as const, blocks: mapBlocks(data) },
      { id: 'failures', title: 'Failures', blocks: failureBlocks(runs, { reported, folder }) },
      { id: 'doubts', title: 'Issues', blocks: doubtBlocks(runs, issues) },
      planSection(data),
    ].filter(({ blocks }) => blocks.length > 0),
  };
}

/** "7 measured, 1 failed; 4.0 min of runs" */
function outcomeText({ runs, status }: SweepResult, isReported: boolean): Part[] {
  const counts = Object.entries(runOutcomeLabels).flatMap(([outcome, label]) => {
    const count = runs.filter((run) => run.outcome === outcome).length;
    return count === 0 ? [] : [`${count} ${label}`];
  });
  const took = runs.reduce((sum, { duration_s: runS }) => sum + (runS ?? 0), 0);
  const isStopped = runs.some(({ outcome, failure }) => outcome === 'not_run' && failure !== null);
  const next = isStopped ? 'Once the failure is fixed' : `The sweep was ${status}; to continue`;
  return [
    counts.join(', '),
    ...(took > 0 ? ['; ', seconds(took), ' of runs'] : []),
    ...(status === 'complete' || isReported ? [] : [`. ${next}: inferscope sweep --resume`]),
  ];
}

/** A run, or a point of a run that measured several. */
interface Line extends SweepFigures {
  run: SweepRun;
}

/** Values that all runs share are above the table; if there is no room, values shown elsewhere are dropped first. */
function runBlocks(data: SweepResult): Block[] {
  const lines = data.runs.flatMap((run): Line[] =>
    (run.figures.length > 0 ? run.figures : [{ label: null, values: {} }]).map((one) => ({ run, ...one })),
  );
  const figures = shownFiguresOf(data);
  const shortIds = uniqueBeginnings(data.runs.flatMap(({ session_id: id }) => (id === null ? [] : [id])));
  const parameters = parametersOf(data);
  const [byModel, others] = [true, false].map((follows) =>
    parameters.filter((name) => followsModel(data.runs, name) === follows),
  ) as [string[], string[]];
  const order = [
    'session',
    'duration',
    ...byModel,
    ...figures.slice(1).toReversed(),
    ...others.slice(1).toReversed(),
  ];
  const columns: ColumnOf<Line>[] = [
    { id: 'run', head: 'run', ...number, cell: ({ run }) => ({ count: run.number }) },
    ...parameters.map((name): ColumnOf<Line> => ({
      id: name,
      head: parameterLabel(name),
      numeric: data.runs.every(({ parameters: runParameters }) => typeof runParameters[name] !== 'string'),
      cell: ({ run }) => parameterValue(name, run.parameters[name]),
    })),
    ...(lines.length > data.runs.length
      ? [{ id: 'point', head: 'point', wraps: true, cell: ({ label }: Line) => label ?? '' }]
      : []),
    ...figures.map((name): ColumnOf<Line> => ({
      id: name,
      head: figureLabel(name),
      ...number,
      cell: ({ run, values }) => figureValue(name, values[name], run),
    })),
    { ...tookColumn, cell: ({ run }) => tookColumn.cell(run) },
    ...(data.runs.every((run) => outcomeOf(run) === runOutcomeLabels.measured)
      ? []
      : [{ id: 'outcome', head: 'outcome', cell: ({ run }: Line) => outcomeValue(run) }]),
    ...(shortIds.size === 0 ? [] : [sessionColumn(shortIds)]),
  ];
  const keptIds = ['run', 'duration', 'outcome', 'session', ...figures, ...data.varied];
  const { columns: varying, constants } = withoutConstantColumns(columns, lines, keptIds, { single: true });
  const columnsInDropOrder = varying.map((column) => {
    const drop = order.indexOf(column.id);
    return drop < 0 ? column : { ...column, drop };
  });
  return [
    ...(constants.length > 0 ? [{ type: 'text', text: ['all: ', ...constants] } as const] : []),
    tableOf('Main figures of each run; all are in the CSV', columnsInDropOrder, lines, { filter: true }),
  ];
}

const sessionColumn = (shortIds: ReadonlyMap<string, string>): ColumnOf<Line> => ({
  id: 'session',
  head: 'session',
  cell: ({ run }) => {
    const { session_id: id, outcome } = run;
    if (id !== null) return { code: shortIds.get(id) ?? id };
    return {
      missing: outcome === 'measured' ? 'the command saves none' : `no result (${runOutcomeLabels[outcome]})`,
    };
  },
});

/** Length of the time at the beginning of a session id. */
const stampLength = 15;

/** The shortest beginnings, not shorter than the time, that select each session among the others. */
function uniqueBeginnings(ids: readonly string[]): ReadonlyMap<string, string> {
  return new Map(
    ids.map((session) => {
      let length = stampLength;
      const isShared = () =>
        ids.filter((one) => one.slice(0, length) === session.slice(0, length)).length > 1;
      while (length < session.length && isShared()) length += 1;
      return [session, session.slice(0, length)];
    }),
  );
}

/** Whether a parameter has one value per model, with several models. */
function followsModel(runs: readonly SweepRun[], name: string): boolean {
  const different = (...names: string[]) =>
    new Set(runs.map(({ parameters }) => JSON.stringify(names.map((parameter) => parameters[parameter]))))
      .size;
  const models = different('model_id');
  return name !== 'model_id' && models > 1 && different('model_id', name) === models;
}

const outcomeOf = ({ outcome, attempts }: SweepRun): string =>
  `${runOutcomeLabels[outcome]}${attempts > 1 ? ` (try ${attempts})` : ''}`;

const outcomeValue = (run: SweepRun): Value => ({
  text: outcomeOf(run),
  ...(['failed', 'timed_out', 'partial'].includes(run.outcome) ? { tone: 'fault' as const } : {}),
});

const mapBlocks = (data: SweepResult): Block[] =>
  sweepMaps(data).map((map) => {
    const title = [figureLabel(map.figure), map.fixed].filter(Boolean).join(' · ');
    return {
      type: 'chart',
      title,
      label: `${title} by ${map.y.name} and ${map.x.name}`,
      chart: mapChart(map),
      half: true,
      behind: {
        type: 'table',
        title: `${figureLabel(map.figure)}; rows: ${map.y.name}, columns: ${map.x.name}`,
        columns: [map.y.name, ...map.x.values].map((head) => ({ id: head, head, ...number })),
        rows: map.y.values.map((head, y) => ({
          cells: [head, ...map.x.values.map((_, x) => cellOf(map, x, y))],
        })),
      },
    };
  });

function cellOf({ figure, cells }: SweepMap, x: number, y: number): Text {
  const cell = cells.find((candidate) => candidate.x === x && candidate.y === y);
  return cell ? figureValue(figure, cell.value, cell.run) : { missing: 'not in the plan' };
}

const failureKey = ({ code, what, why, fix }: SweepFailure): string => JSON.stringify([code, what, why, fix]);

/** Each failure once, with the runs that failed with it. */
function failureBlocks(
  runs: readonly SweepRun[],
  { reported, folder }: { reported: SweepFailure | null; folder: string },
): Block[] {
  const byFailure = new Map<string, { failure: SweepFailure; failed: SweepRun[] }>();
  for (const run of runs) {
    if (run.failure === null) continue;
    const key = failureKey(run.failure);
    if (reported !== null && key === failureKey(reported)) continue;
    const entry = byFailure.get(key) ?? { failure: run.failure, failed: [] };
    entry.failed.push(run);
    byFailure.set(key, entry);
  }
  const items = [...byFailure.values()].map(({ failure: { code, what, why, fix }, failed }) => {
    const [{ label, log }] = failed as [SweepRun, ...SweepRun[]];
    const whole = `${what} (${code}). ${withoutEnd(why)}. ${withoutEnd(fix)}.`;
    return {
      name: rangesText(failed.map(({ number: run }) => run)),
      text: [
        failed.length > 1 ? whole : `${label}: ${whole}`,
        ...(log === null
          ? []
          : [
              failed.length > 1 ? ' First log: ' : ' Log: ',
              { code: folder === '' ? log : `${folder}/${log}` },
            ]),
      ],
    };
  });
  return items.length > 0 ? [{ type: 'facts', items }] : [];
}

/** Issues of the plan and the runs, grouped by code, with the text of the first. */
function doubtBlocks(runs: readonly SweepRun[], issues: readonly Issue[]): Block[] {
  const issuesByCode = new Map<string, { numbers: Set<number>; texts: Set<string> }>();
  for (const { number: run, issues } of runs)
    for (const { code, text } of issues) {
      const entry = issuesByCode.get(code) ?? { numbers: new Set(), texts: new Set() };
      issuesByCode.set(code, { numbers: entry.numbers.add(run), texts: entry.texts.add(text) });
    }
  const items = [...issuesByCode.values()].map(({ numbers, texts }) => {
    const [first, ...otherTexts] = texts;
    const runNames = `${numbers.size > 1 ? 'runs' : 'run'} ${rangesText([...numbers])}`;
    return `${runNames}: ${first}${otherTexts.length > 0 ? ` (and ${plural(otherTexts.length, 'similar message')})` : ''}`;
  });
  return [
    ...(issues.length > 0 ? [{ type: 'issues', issues } as const] : []),
    ...(items.length > 0 ? [{ type: 'notes', items } as const] : []),
  ];
}

function planSection({ runs, protocol }: SweepResult): Section {
  const { timeout_s: timeout, retries, min_free_bytes: free } = protocol;
  return {
    id: 'plan',
    title: 'Plan',
    level: 3,
    blocks: [
      {
        type: 'text',
        text: [
          'Each run is its own process',
          ...(timeout === null ? [] : [', stopped after ', seconds(timeout)]),
          `; retries after a fault of the machine: ${retries}. Each run starts when GPU memory is free again and `,
          { n: free, unit: 'B' },
          ' of disk.',
        ],
      },
      planTable('Expected and measured', runs, [
        { id: 'label', head: 'configuration', cell: ({ label }) => label },
      ]),
      {
        type: 'fold',
        title: 'Commands',
        blocks: [
          {
            type: 'lines',
            text: runs.map(({ arguments: words }) => commandText(['inferscope', ...words])).join('\n'),
          },
        ],
      },
    ],
  };
}
