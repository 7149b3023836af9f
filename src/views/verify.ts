import { barWords } from '../vocabulary/bars.js';
import type { Document } from '../model/document.js';
import { isMinGainError, minGainErrorShare } from '../model/gain-error.js';
import type { ExplainResult, VerifyResult } from '../model/documents/explain.js';
import { changeOutcomes, gainPlace } from '../vocabulary/change-outcomes.js';
import {
  formatColumn,
  formatCount,
  formatShareSetting,
  formatWithRange,
  plural,
} from '../vocabulary/format.js';
import { perInstance } from '../vocabulary/stages.js';
import type { Block, Part, Text, View } from './block.js';
import { negativeNote } from './compare-waterfalls.js';
import { explanationBlocks } from './explain-blocks.js';
import { stageHead } from './explain-series.js';
import { onPageOnly } from './on-page.js';

type Change = VerifyResult['changes'][number];
type Stage = VerifyResult['stages'][number];

/** Bars that changed by a smaller share of the stage are not shown. */
const minShare = 0.01;

/** Gains expected by the findings of one session against those achieved in a session with the changes made. */
export function verifyView(document: Document<VerifyResult>, explain: Document<ExplainResult>): View {
  const { data, issues } = document;
  return {
    command: 'explain --verify',
    title: `${nameOf(data.before)} → ${nameOf(data.after)}`,
    document,
    session: data.before,
    lead: [
      { type: 'headline', sentences: data.sentences },
      { type: 'issues', issues },
    ],
    sections: [
      {
        id: 'verify',
        title: 'Expected and achieved',
        untitled: true,
        blocks: [
          ...data.stages.flatMap((stage) => stageBlocks(stage, labelsOf(explain.data, stage))),
          ...data.stages.flatMap(negativeBars).slice(0, 1),
          ...changeBlocks(data),
        ],
      },
      ...onPageOnly(explanationBlocks(explain.data)),
    ],
  };
}

const nameOf = ({ name, id }: VerifyResult['before']): string => name ?? id;

/** Labels of the session's bars: bars of a server are measured from the client. */
const labelsOf = ({ stages }: ExplainResult, { kind }: Stage): ReadonlyMap<string, string> =>
  new Map(
    stages
      .filter((stage) => stage.kind === kind)
      .flatMap(({ bars }) => bars.map(({ id, label }) => [id, label])),
  );

/** Bars that are shown. The compared times may be of kernels and copies only; the bars have all of the stage. */
function changedBars({ bars }: Stage): Stage['bars'] {
  const total = Math.max(
    ...(['before_ms', 'after_ms'] as const).map((side) =>
      bars.reduce((sum, bar) => sum + Math.max(0, bar[side] ?? 0), 0),
    ),
  );
  return bars.filter((bar) => Math.abs((bar.before_ms ?? 0) - (bar.after_ms ?? 0)) >= minShare * total);
}

function stageBlocks(stage: Stage, labels: ReadonlyMap<string, string>): Block[] {
  const { graded_on, graded_why } = stage;
  const barValue = (n: number | null): Part =>
    n === null
      ? { missing: 'only one of the rooflines is known, and it splits the kernels into bars' }
      : { n, unit: 'ms', of: largest };
  const largest = Math.max(0, ...stage.bars.flatMap((bar) => [bar.before_ms ?? 0, bar.after_ms ?? 0]));
  const bars = changedBars(stage);
  return [
    {
      type: 'heading',
      text: stageHead({ ...stage, name: null }),
    },
    {
      type: 'text',
      text: `${graded_on === 'wall' ? 'Compared by the time of the stage' : 'Compared by the time of its kernels and copies, because the time of the stage is too uncertain'}: ${graded_why}.${sequencesText(stage)}`,
    },
    {
      type: 'table',
      title: 'Changed waterfall bars (mean per instance)',
      reasons: true,
      columns: [
        { id: 'bar', head: 'bar' },
        { id: 'before_ms', head: 'before', numeric: true },
        { id: 'after_ms', head: 'after', numeric: true },
        { id: 'change_ms', head: 'change', numeric: true },
      ],
      rows: bars.map(({ id, before_ms: was, after_ms: is }) => ({
        cells: [
          labels.get(id) ?? barWords(id).label,
          barValue(was),
          barValue(is),
          was === null || is === null
            ? barValue(null)
            : { n: is - was, unit: 'ms', of: largest, signed: true },
        ],
      })),
    },
  ];
}

const negativeBars = (stage: Stage): Block[] =>
  negativeNote(
    changedBars(stage).map(({ id, before_ms: was, after_ms: is }) => ({ id, values: [was, is] })),
    [stage.before_ms.value ?? 0, stage.after_ms.value ?? 0],
  );

/** Steps with different numbers of sequences are different work. */
const sequencesText = ({ sequences }: Stage): string =>
  sequences === null
    ? ''
    : ` A step has ${plural(sequences.before, sequences.unit)} before and ${formatCount(sequences.after)} after: the times after are scaled to ${plural(sequences.before, sequences.unit)}.`;

/** "1.65 ms ± 0.21, below": the gain with its error, and where it is if outside of the expected interval. */
function achievedValue(change: Change): Text {
  const { achieved_ms: ms, achieved_error_ms: errorMs, as_expected: isExpected } = change;
  if (ms === null || errorMs === null) return valueOrReason(null, 'ms');
  const { texts, unit } = formatColumn([ms, errorMs], 'ms', Math.max(Math.abs(ms), errorMs), errorMs);
  return `${texts[0]} ${unit} ± ${texts[1]}${isExpected === false ? `, ${gainPlace(change)}` : ''}`;
}

function changeBlocks(data: VerifyResult): Block[] {
  const { changes } = data;
  if (changes.length === 0) return [];
  const longestMs = Math.max(
    0,
    ...changes.flatMap(({ high_ms: high, achieved_ms: ms }) => [high ?? 0, ms ?? 0]),
  );
  return [
    { type: 'heading', text: 'Expected gains of the findings' },
    {
      type: 'table',
      title: 'Gains (mean per instance)',
      columns: [
        { id: 'number', head: '#', numeric: true, above: true },
        { id: 'finding', head: 'finding', wraps: true, above: true },
        { id: 'outcome', head: 'now' },
        { id: 'expected_ms', head: 'expected gain', numeric: true },
        { id: 'achieved_ms', head: 'achieved', numeric: true },
        { id: 'error', head: 'error', numeric: true, drop: 0 },
      ],
      rows: changes.map((change, i) => ({
        cells: [
          { count: i + 1 },
          [change.title, ...gainParts(change, longestMs)],
          changeOutcomes[change.outcome],
          expectedOf(change),
          achievedValue(change),
          change.error !== null && Math.abs(change.error) < 0.01
            ? '<1 %'
            : valueOrReason(change.error, 'ratio'),
        ],
      })),
    },
    {
      level: 3,
      type: 'text',
      text: 'Drawn: the expected interval, the expected gain as a line, the achieved gain as a dot.',
    },
    { type: 'notes', items: [...shareNotes(data), ...changeNotes(changes)] },
    ...errorNote(changes),
  ];
}

/** How the gain of a stage is divided over several findings: their own bars may have changed by more or less. */
function shareNotes({ stages, changes }: VerifyResult): Part[][] {
  const kinds = new Map(stages.toReversed().map(({ kind, achieved_ms: ms }) => [kind, ms]));
  return [...kinds].flatMap(([kind, ms]) => {
    const numbers = [...changes.entries()].flatMap(([i, { stage, as_expected: graded }]) =>
      stage === kind && graded !== null ? [i + 1] : [],
    );
    if (numbers.length < 2) return [];
    const gain = ms < 0 ? 'loss' : 'gain';
    return [
      [
        `${numbers.join(', ')}. Shares of the ${gain} ${perInstance(kind)}, `,
        { n: Math.abs(ms), unit: 'ms' },
        ', in proportion to the expected gains: effects of findings on one stage cannot be separated.',
      ],
    ];
  });
}

/** Why the error of a gain may be larger than those of the two means. */
const errorNote = (changes: readonly Change[]): Block[] =>
  changes.some(({ achieved_ms: ms, achieved_error_ms: errorMs }) => isMinGainError(ms, errorMs))
    ? [
        {
          type: 'text',
          text: `The error of an achieved gain is at least ± ${formatShareSetting(minGainErrorShare)}: machines drift between runs.`,
        },
      ]
    : [];

/** What the table does not say of changes, the same once: "1, 3. Gone; no gain was expected." */
function changeNotes(changes: readonly Change[]): string[] {
  const numbers = new Map<string, number[]>();
  for (const [i, { as_expected: graded, text }] of changes.entries())
    if (graded === null) numbers.set(text, [...(numbers.get(text) ?? []), i + 1]);
  return [...numbers].map(([text, list]) => `${list.join(', ')}. ${text}`);
}

const valueOrReason = (n: number | null, unit: string, why = 'the gain cannot be measured'): Text =>
  n === null ? { missing: why } : { n, unit, ...(unit === 'ratio' && { signed: true }) };

const expectedOf = ({ expected_ms: ms, low_ms: low, high_ms: high }: Change): Text =>
  ms === null || low === null || high === null
    ? valueOrReason(ms, 'ms', 'no expected gain')
    : withInterval(formatWithRange(ms, low, high, 'ms'));

const withInterval = ({ value, range }: ReturnType<typeof formatWithRange>): string =>
  range === null ? value : `${value} (${range})`;

function gainParts(
  { low_ms: lowMs, expected_ms: expectedMs, high_ms: highMs, achieved_ms: achievedMs }: Change,
  longestMs: number,
): Part[] {
  if (lowMs === null || expectedMs === null || highMs === null || longestMs <= 0) return [];
  return [{ gain: { lowMs, expectedMs, highMs, achievedMs }, longestMs }];
}
