import type { Document } from '../model/document.js';
import type { CompareResult, StageValue } from '../model/documents/compare.js';
import type { Figure } from '../model/figure.js';
import { cutEnd } from '../vocabulary/cut.js';
import { formatQuantity } from '../vocabulary/format.js';
import { kernelChangeLabels } from '../vocabulary/kernel-changes.js';
import { kernelLabels } from '../vocabulary/kernel-label.js';
import { classLabels } from '../vocabulary/op-classes.js';
import { stageLabels } from '../vocabulary/stages.js';
import type { Block, Column, Part, Row, Section, Text, View } from './block.js';
import { changeColumns, letter, shareChange, sideColumns, timeChange } from './compare-sides.js';
import { onSides } from './metric-changes.js';
import { waterfallBlocks } from './compare-waterfalls.js';
import { maxHintCharacters } from './trace-values.js';

type Stage = CompareResult['stages'][number];
type Measured = NonNullable<StageValue>;

const kernelsInText = 12;
const tilesInText = 8;
/** Classes below this share of every session's stage are shown only on the page. */
const minShare = 0.005;

/** Link to a session, or to the page of one of its kernels; on pages that have them. */
type SessionLink = (session: number, kernel?: string) => string | undefined;

/** Two or more sessions side by side, changes against the first: key sentences, waterfalls, then stages, classes and kernels. */
export function compareView(document: Document<CompareResult>, linkTo: SessionLink = () => undefined): View {
  const { data, issues } = document;
  const { sessions } = data;
  const names = sessions.map(({ name, id }) => name ?? id);
  return {
    command: 'session compare',
    title: names.join(' → '),
    document,
    session: { id: names.join(', '), started_at: sessions.at(-1)!.started_at },
    lead: [
      {
        type: 'facts',
        items: sessions.map(({ title, source }, index) => ({
          name: letter(index),
          text: [linkedText(names[index]!, linkTo(index)), ` · ${title} · ${source}`].flat(),
        })),
      },
      { type: 'headline', sentences: data.headlines.map(({ text }) => text) },
      { type: 'issues', issues },
    ],
    sections: [
      section('waterfalls', 'Where the time goes (mean per instance)', waterfallBlocks(data)),
      section('scaling', 'Scaling over ranks', data.scaling.length > 0 ? [scalingTable(data)] : []),
      section('stages', 'Stages (mean per instance)', [stageTable(data)]),
      section(
        'classes',
        'Classes (mean per instance)',
        byPhase(data.classes, (rows) => classTable(data, rows)),
      ),
      section(
        'kernels',
        `${data.what === 'trace' ? 'Kernels' : 'Operators'} that changed most (mean per instance)`,
        kernelBlocks(data, linkTo),
      ),
      section('tiles', 'GEMM tiles that changed most', data.gemm_tiles.length > 0 ? [tileTable(data)] : []),
      section('environment', 'Other differences', environmentBlocks(data)),
    ].filter(({ blocks }) => blocks.length > 0),
  };
}

const linkedText = (text: string, link: string | undefined): Text =>
  link === undefined ? text : { link, text };

const section = (id: string, title: string, blocks: Block[]): Section => ({ id, title, level: 2, blocks });

/** Blocks per phase under the phase's name; without names if there is only one phase. */
function byPhase<R extends { phase: string }>(
  rows: readonly R[],
  blocksOf: (phaseRows: R[]) => Block[],
): Block[] {
  const phases = [...new Set(rows.map(({ phase }) => phase))];
  return phases.flatMap((phase) => {
    const blocks = blocksOf(rows.filter((row) => row.phase === phase));
    return [
      ...(phases.length > 1 && blocks.length > 0
        ? [{ type: 'heading', level: levelOf(blocks), text: phaseName(phase) } as const]
        : []),
      ...blocks,
    ];
  });
}

/** Level from which a row of these blocks is shown. */
const levelOf = (blocks: readonly Block[]): 1 | 2 | 3 =>
  blocks
    .flatMap((block) => (block.type === 'table' ? block.rows.map(({ level = 1 }) => level) : [1 as const]))
    .reduce((lowest, level) => (level < lowest ? level : lowest), 3);

const phaseName = (phase: string): string =>
  (stageLabels as Record<string, string | undefined>)[phase] ?? phase;

const noStage = 'the session has no such stage';

interface Line {
  label: string;
  cell: (value: Measured) => Text | null;
  /** Why a value is missing, if it says so. */
  why?: (value: Measured) => string | null;
  /** Value that a change is computed from; null if a change is meaningless. */
  number?: (value: Measured) => number | null;
  /** Whether significance is of this line instead of the stage's time. */
  judged?: boolean;
}

const figureLine = (label: string, figureOf: (value: Measured) => Figure, utilization = false): Line => ({
  label,
  cell: (value) => (figureOf(value).value === null ? null : { figure: figureOf(value), utilization }),
  why: (value) => whyMissing(figureOf(value)),
  number: (value) => figureOf(value).value,
});

const countLine = (label: string, valueOf: (value: Measured) => number | null): Line => ({
  label,
  cell: (value) => countOf(valueOf(value)),
});

/** Why a value is missing: the same words for all values of one cause, which are then one note. */
const whyMissing = (figure: Figure): string | null => (figure.value === null ? figure.reason.text : null);

/** Lines to compare stages that process a different number of tokens. */
const perToken: readonly Line[] = [
  { ...countLine('tokens', ({ tokens }) => tokens), why: ({ tokens_per_s }) => whyMissing(tokens_per_s) },
  { ...figureLine('time per token', ({ ms_per_token: time }) => time), judged: true },
];
const lines: readonly Line[] = [
  figureLine('tok/s', ({ tokens_per_s: rate }) => rate),
  figureLine('MFU', ({ mfu }) => mfu, true),
  {
    label: 'idle',
    cell: ({ idle_share: share }) => (share === null ? null : { n: share, unit: 'ratio' }),
  },
  countLine('kernels', ({ kernels }) => kernels),
  countLine('launches', ({ launches }) => launches),
];

/** Mean calls per instance, rounded from 100 on. */
function countOf(count: number | null): Part | null {
  if (count === null) return null;
  return Number.isInteger(count) || count >= 100 ? { count: Math.round(count) } : { n: count, unit: '' };
}

function scalingTable({ scaling, sessions }: CompareResult): Block {
  const several = scaling.length > 1;
  return {
    type: 'table',
    title: 'Assumes that the ranks of a session share the work of a step',
    columns: [
      ...(several ? [{ id: 'stage', head: 'stage' }] : []),
      { id: 'session', head: 'session' },
      { id: 'ranks', head: 'ranks' },
      { id: 'speedup', head: 'speedup' },
      { id: 'efficiency', head: 'efficiency' },
      { id: 'communication', head: 'exposed communication' },
    ],
    reasons: true,
    rows: scaling.flatMap(({ phase, values }) =>
      values.map((value, i): Row => ({
        cells: [
          ...(several ? [phaseName(phase)] : []),
          `${letter(i)} ${sessions[i]!.name ?? sessions[i]!.id}`,
          ...(value === null
            ? Array.from({ length: 4 }, (): Text => ({ missing: noStage }))
            : ([
                { count: value.ranks },
                [{ n: value.speedup, unit: '' }, '×'],
                { n: value.efficiency, unit: 'ratio' },
                { n: value.communication_share, unit: 'ratio' },
              ] satisfies Text[])),
        ],
      })),
    ),
  };
}

function stageTable(data: CompareResult): Block {
  const count = data.sessions.length;
  const isPair = count === 2;
  return {
    type: 'table',
    title: 'Stages; a change is significant when it exceeds the 95 % interval of the difference',
    columns: [
      { id: 'stage', head: 'stage' },
      ...sideColumns(count, 'value'),
      ...changeColumns(count),
      ...(isPair ? [{ id: 'significant', head: 'significant' }] : []),
    ],
    reasons: true,
    rows: data.stages.flatMap((stage) => stageRows(stage, isPair)),
  };
}

function stageRows({ phase, values, changes }: Stage, isPair: boolean): Row[] {
  const sizes = new Set(values.map((value) => value?.tokens ?? null));
  const significance = isPair ? [significanceText(changes[1] ?? null)] : [];
  const isOtherSize = sizes.size > 1 && !sizes.has(null);
  const row = ({ label, cell, why, number, judged = false }: Line): Row[] => {
    const cells = values.map((value) => value && cell(value));
    if (cells.every((cell) => cell === null)) return [];
    const change = (index: number): [Text, Text] => {
      const [from, to] = [values[0], values[index]].map((value) => (value && number ? number(value) : null));
      return ['', typeof from === 'number' && typeof to === 'number' ? shareChange(from, to) : ''];
    };
    return [
      {
        cells: [
          `  ${label}`,
          ...cells.map((cell, i) => {
            const value = values[i];
            return cell ?? { missing: value ? (why?.(value) ?? 'not recorded') : noStage };
          }),
          ...values.slice(1).flatMap((_, i) => change(i + 1)),
          ...significance.map((text) => (judged && isOtherSize ? text : '')),
        ],
      },
    ];
  };
  const time: Row = {
    cells: [
      phaseName(phase),
      ...values.map((value): Text =>
        value ? { figure: value.duration_ms, spread: 'interval' } : { missing: noStage },
      ),
      ...values
        .slice(1)
        .flatMap((value) =>
          timeChange(values[0]?.duration_ms.value ?? null, value?.duration_ms.value ?? null, noStage),
        ),
      ...significance.map((text) => (isOtherSize ? '' : text)),
    ],
  };
  return [time, ...[...(sizes.size > 1 ? perToken : []), ...lines].flatMap(row)];
}

function significanceText(change: Stage['changes'][number]): Text {
  if (!change) return { missing: noStage };
  if (change.significant === null) return { missing: 'the spread of a session is unknown' };
  return change.significant ? 'yes' : 'no';
}

function classTable({ sessions, stages }: CompareResult, classes: CompareResult['classes']): Block[] {
  const count = sessions.length;
  const calls = sideColumns(count, 'calls').map((column, index): Column => ({
    ...column,
    head: `${column.head} calls`,
    drop: index,
  }));
  const largest = Math.max(0, ...classes.flatMap(({ values }) => values.map((value) => value?.ms ?? 0)));
  const row = ({ phase, class: opClass, values }: (typeof classes)[number]): Row => {
    const whyMissing = (i: number) =>
      stages.find((stage) => stage.phase === phase)?.values[i] ? 'not recorded' : noStage;
    const cells = values.map((value, i): Text =>
      value ? { n: value.ms, unit: 'ms', of: largest } : { missing: whyMissing(i) },
    );
    return {
      level: values.some((value) => (value?.share ?? 0) >= minShare) ? 1 : 3,
      cells: [
        classLabels[opClass],
        ...cells,
        ...values
          .slice(1)
          .flatMap((value, i) =>
            timeChange(values[0]?.ms ?? null, value?.ms ?? null, whyMissing(value ? 0 : i + 1), largest),
          ),
        ...values.map((value, i): Text => (value ? countOf(value.count)! : { missing: whyMissing(i) })),
      ],
    };
  };
  return [
    {
      type: 'table',
      title: `Classes of ${phaseName(classes[0]!.phase)}`,
      columns: [
        { id: 'class', head: 'class' },
        ...sideColumns(count, 'ms'),
        ...changeColumns(count),
        ...calls,
      ],
      reasons: true,
      rows: classes.map(row),
    },
    ...(overlap(classes, stages) ? [{ type: 'text', text: overlapText } as const] : []),
  ];
}

const overlapText = 'Kernels that run at the same time count in full here: their sum exceeds the busy time.';

/** Smaller differences are of how the two times were measured. */
const overlapFactor = 1.05;

/** Whether the kernels of a side take longer in sum than the device was busy. */
const overlap = (classes: CompareResult['classes'], stages: CompareResult['stages']): boolean =>
  stages
    .filter(({ phase }) => phase === classes[0]!.phase)
    .some(({ values }) =>
      values.some((value, i) => {
        const ms = classes.reduce((sum, row) => sum + (row.values[i]?.ms ?? 0), 0);
        return typeof value?.busy_ms === 'number' && ms > overlapFactor * value.busy_ms;
      }),
    );

/** By phase, largest change first. */
function kernelBlocks(data: CompareResult, linkTo: SessionLink): Block[] {
  const isPair = data.sessions.length === 2;
  const inText = new Set(
    data.kernels.filter(({ status }) => status !== 'same' || !isPair).slice(0, kernelsInText),
  );
  const whyMissing = 'it did not run in this session';
  const labels = kernelLabels(data.kernels);
  const row = (kernel: CompareResult['kernels'][number]): Row => {
    const { name, short_name: short, class: opClass, values, changes, status } = kernel;
    const label = data.what === 'trace' ? labels.get(name)! : short;
    return {
      level: inText.has(kernel) ? 1 : 3,
      cells: [
        { text: label, hint: `${classLabels[opClass]}: ${cutEnd(name, maxHintCharacters)}` },
        ...values.map((value, index): Text => {
          if (!value) return { missing: whyMissing };
          const time = value.mean_ns / 1e6;
          return [
            countOf(value.count)!,
            ' × ',
            linkedText(formatQuantity(time, 'ms'), linkTo(index, name)),
          ].flat();
        }),
        ...changes
          .slice(1)
          .map((change): Text =>
            change ? { n: change.delta_ms, unit: 'ms', signed: true } : { missing: whyMissing },
          ),
        status === 'between'
          ? `only in ${values.flatMap((value, index) => (value ? letter(index) : [])).join(', ')}`
          : kernelChangeLabels[status],
      ],
    };
  };
  return byPhase(data.kernels, (kernels) => [
    {
      type: 'table',
      title: `Calls × mean time in ${phaseName(kernels[0]!.phase)}`,
      columns: [
        { id: 'name', head: 'name', wraps: true },
        ...sideColumns(data.sessions.length, 'calls'),
        ...changeColumns(data.sessions.length).filter((_, index) => index % 2 === 0),
        { id: 'status', head: 'status' },
      ],
      rows: kernels.map(row),
      filter: true,
    },
  ]);
}

const tileTable = ({ gemm_tiles: tiles, sessions }: CompareResult): Block => ({
  type: 'table',
  title: 'Tiles of the same GEMM kernels, and how many of an instance have them',
  columns: [
    { id: 'phase', head: 'stage' },
    { id: 'gemms', head: 'kernels', numeric: true },
    ...sessions.map((_, index): Column => ({
      id: `tile_${letter(index).toLowerCase()}`,
      head: letter(index),
      wraps: true,
    })),
  ],
  rows: tiles.map(({ phase, count, tiles: phaseTiles }, index): Row => ({
    level: index < tilesInText ? 1 : 3,
    cells: [phaseName(phase), { count }, ...phaseTiles],
  })),
});

/** What differs, then what only some sessions record. One line per fact, since command lines are too long for columns. */
function environmentBlocks({ environment, sessions }: CompareResult): Block[] {
  const isRecorded = ({ values }: Difference): boolean => values.every((value) => value !== null);
  const known = environment.filter(isRecorded);
  const partly = environment.filter((difference) => !isRecorded(difference));
  return [
    ...onSides(known, false, environmentFacts),
    ...onSides(partly, true, environmentFacts, sessions.length > 2 ? 'some sides' : 'one side'),
  ];
}

type Difference = CompareResult['environment'][number];

const environmentFacts = (differences: readonly Difference[]): Block => ({
  type: 'facts',
  items: differences.map(({ label, values, could_explain: why }, index) => {
    const isFirst = differences.findIndex(({ could_explain }) => could_explain === why) === index;
    return {
      name: label,
      text: `${values.map((value) => value ?? '–').join(' → ')}${why === null || !isFirst ? '' : ` (${why})`}`,
    };
  }),
});
