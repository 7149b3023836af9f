import { halfInterval } from '../model/half-interval.js';
import { explainedBars, isProfiled } from '../model/headline-time.js';
import type { StageWaterfall, WhatIfResult } from '../model/documents/explain.js';
import { barWords } from '../vocabulary/bars.js';
import { timePerUnit, unchangedText } from '../vocabulary/explain-words.js';
import { formatColumn, formatNumber, formatWithRange } from '../vocabulary/format.js';
import { pointLabel } from '../vocabulary/bench.js';
import { capitalize, joinWithAnd, withoutEnd } from '../vocabulary/sentence.js';
import { stageLabel } from '../vocabulary/stages.js';
import type { Block, Part, Value } from './block.js';
import { waterfallBars } from './compare-waterfalls.js';
import { stageHead } from './explain-series.js';

type Stage = WhatIfResult['stages'][number];

/** The predicted waterfall of a stage, shown above the measured one, and the change of each bar; `change` as typed. */
export function whatIfBars(measured: StageWaterfall, stage: Stage, change: string): Block[] {
  if (stage.after_ms.value === null) return [{ type: 'heading', text: whatIfHead(stage) }];
  const before = explainedBars(measured.bars).bars;
  const changes = new Map(stage.bars.map((bar) => [bar.id, bar]));
  const added = stage.bars.filter(({ id }) => before.every((bar) => bar.id !== id));
  const [short, columns] = [
    ['now', 'predicted'],
    [
      { id: 'now_ms', head: 'now', numeric: true },
      { id: 'predicted_ms', head: 'predicted', numeric: true },
      { id: 'change_ms', head: 'change', numeric: true },
      { id: 'change_share', head: '%', numeric: true },
    ],
  ];
  const both = waterfallBars(
    {
      phase: measured.kind,
      profiled: isProfiled(measured),
      times_ms: [stage.before_ms, stage.after_ms],
      bars: [
        ...before.map(({ id, label, ms }) => ({
          id,
          label,
          values: [ms, changes.get(id)?.after_ms ?? ms],
          changes: [],
        })),
        ...added.map(({ id, before_ms, after_ms }) => ({
          id,
          label: barWords(id).label,
          values: [before_ms, after_ms],
          changes: [],
        })),
      ],
    },
    {
      short,
      long: ['as measured', `predicted with ${change}`],
      timeKinds: ['measured', 'predicted'],
      columns,
    },
  );
  return [{ ...both, title: whatIfHead(stage), sides: both.sides.slice(1) }, whatIfNotes(stage)];
}

/** Why bars change, which changes do nothing and why, and the assumptions. */
export const whatIfNotes = (stage: Stage): Block => ({
  type: 'notes',
  items: [
    ...reasons(stage),
    ...stage.unchanged.map(({ change, why }) => unchangedText(change, why)),
    ...stage.assumptions.map((text) => `Assumed: ${withoutEnd(text)}.`),
  ],
});

/** Bars that change by a smaller share of the stage, or not in the digits shown, are left out in a terminal, and their reasons everywhere. */
const minShare = 0.002;

export const isShownChange = (
  { before_ms: now, after_ms: then }: Stage['bars'][number],
  time: Stage['before_ms'],
): boolean => {
  const total = time.value ?? 0;
  const [shownNow, shownThen] = formatColumn([now, then], 'ms', total, halfInterval(time)).texts;
  return Math.abs(now - then) >= minShare * total && shownNow !== shownThen;
};

/** Bars that change for the same reason are named together. */
function reasons({ bars, before_ms }: Stage): string[] {
  const shown = bars.filter((bar) => isShownChange(bar, before_ms));
  return [...new Set(shown.map(({ explanation }) => explanation))].map(
    (why) =>
      `${shown
        .filter(({ explanation }) => explanation === why)
        .map(({ id }) => barWords(id).label)
        .join(', ')}: ${why}.`,
  );
}

/** A time in the waterfall of a stage, with the precision that its bars have in the charts. */
export const partOfTime = (ms: number, stageTime: Stage['before_ms']): Value => ({
  n: ms,
  unit: 'ms',
  of: stageTime.value ?? 0,
  half: halfInterval(stageTime),
});

/** "Prefill and decode step at batch 1, 128 in + 64 out; batch 2, 128 in + 64 out: no prediction: …", once per reason. */
export function withoutPrediction(stages: readonly Stage[]): string[] {
  const byReason = new Map<string, Map<string, string[]>>();
  for (const { after_ms: after, ...stage } of stages) {
    if (after.value !== null) continue;
    const points = byReason.get(after.reason.text) ?? new Map<string, string[]>();
    const label = stageLabel({ ...stage, name: null });
    points.set(label, [
      ...(points.get(label) ?? []),
      ...(stage.point === null ? [] : [pointLabel(stage.point)]),
    ]);
    byReason.set(after.reason.text, points);
  }
  return [...byReason].map(([reason, pointsOf]) => {
    const labelsAt = new Map<string, string[]>();
    for (const [label, points] of pointsOf) {
      const at = points.join('; ');
      labelsAt.set(at, [...(labelsAt.get(at) ?? []), label]);
    }
    const names = [...labelsAt].map(
      ([at, labels]) => `${joinWithAnd(labels)}${at === '' ? '' : ` at ${at}`}`,
    );
    return `${capitalize(names.join('; '))}: no prediction: ${withoutEnd(reason)}.`;
  });
}

/** "Decode step: 9.14 ms → 2.7 ms (2.2 to 3.8 ms), 3.4× as fast." */
export function whatIfHead(stage: Stage): Part[] {
  const { before_ms: before, after_ms: after } = stage;
  const name = stageHead({ ...stage, name: null });
  if (after.value === null) return [withoutPrediction([stage])[0] ?? ''];
  const from = before.value ?? 0;
  // In the unit of the range that follows.
  const now: Value = {
    n: from,
    unit: 'ms',
    of: Math.max(from, ...(after.ci95 ?? [])),
    half: halfInterval(before),
  };
  const ratio = after.value > 0 ? from / after.value : 1;
  const change = Math.max(ratio, 1 / ratio);
  const factor = formatNumber(change, change < 1.1 ? 3 : 2);
  const words =
    Math.abs(ratio - 1) < 0.005 ? 'no change' : ratio > 1 ? `${factor}× as fast` : `${factor}× as long`;
  const ms = (n: number): Part => ({ n, unit: 'ms' });
  // What no bar changes is no prediction.
  if (stage.bars.length === 0) return [`${name}: `, now, ', no change.'];
  const each = timePerUnit(stage);
  const predicted = after.ci95 ? formatWithRange(after.value, ...after.ci95, 'ms') : null;
  return [
    `${name}: `,
    now,
    ' → ',
    predicted?.value ?? ms(after.value),
    ...(predicted?.range ? [` (${predicted.range})`] : []),
    `, ${words}`,
    ...(each ? [`; per ${each.unit} `, ms(each.from), ' → ', ms(each.to)] : []),
    '.',
  ];
}
