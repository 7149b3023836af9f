import type { ComparedWaterfall, CompareResult } from '../model/documents/compare.js';
import type { Bars, BarSide, Block, Column, Row, Text } from './block.js';
import {
  always,
  smallShare,
  stageHead,
  stageRank,
  type WaterfallData,
  type WaterfallStage,
} from './explain-series.js';
import { changeColumns, letter, sideColumns, timeChange } from './compare-sides.js';

interface SharedBar {
  id: string;
  name: string;
  label: string;
  values: readonly (number | null)[];
}

/** The waterfall of each stage on every side, and from the first to the second what changed. */
export function waterfallBlocks({ waterfalls, sessions }: CompareResult): Block[] {
  return inOrder(waterfalls).map((one, index): Block => ({
    level: index === 0 ? 1 : 2,
    ...barsOf(one, sessions),
  }));
}

const inOrder = (waterfalls: readonly ComparedWaterfall[]): ComparedWaterfall[] =>
  waterfalls.toSorted((a, b) => stageRank(a.phase) - stageRank(b.phase));

function barsOf(waterfall: ComparedWaterfall, sessions: CompareResult['sessions']): Bars {
  const { phase, profiled, times_ms: times } = waterfall;
  const bars = sharedBars(waterfall);
  const sides = times.flatMap((time, index): BarSide[] => {
    if (time === null) return [];
    const { name, id } = sessions[index]!;
    return [
      {
        label: letter(index),
        bars: bars.map((bar) => ({ name: bar.name, ms: bar.values[index] ?? 0 })),
        totals: [{ name: 'measured', ms: time.value ?? 0 }],
        chart: {
          name: 'waterfall',
          part: phase,
          source: sourceOf(index),
          label: `${letter(index)} · ${name ?? id}`,
        },
      },
    ];
  });
  return {
    t: 'bars',
    title: [
      `${stageHead({ kind: phase as 'decode', name: null, point: null })}: `,
      ...times.flatMap((time, index): Text[] => [
        index === 0 ? '' : ' → ',
        time === null
          ? { missing: 'it has no waterfall of the stage' }
          : { figure: time, spread: 'interval' },
      ]),
      profiled ? ' under the profiler' : '',
    ].flat(),
    sides,
    ...(times.length === 2 && {
      difference: {
        name: 'waterfall',
        part: phase,
        source: 'difference',
        label: `From ${sides[0]!.label} to ${sides[1]!.label}: what each bar adds or saves`,
      },
    }),
    behind: barTable(waterfall, sessions.length),
  };
}

/** Bars under 1 % of every side's time as one before `unattributed`. */
function sharedBars({ bars, times_ms: times }: ComparedWaterfall): SharedBar[] {
  const shown = bars.map(({ id, label, values }): SharedBar => ({ id, name: id, label, values }));
  const small = shown.filter(
    ({ id, values }) =>
      !always(id) && values.every((ms, i) => Math.abs(ms ?? 0) <= smallShare * (times[i]?.value ?? 0)),
  );
  if (small.length < 2) return shown;
  const rest = shown.filter((bar) => !small.includes(bar));
  const last = rest.findIndex(({ id }) => id === 'unattributed');
  const together: SharedBar = {
    id: 'smaller',
    name: `${small.length} smaller`,
    label: `${small.length} smaller: ${small.map(({ id }) => id).join(', ')}`,
    values: times.map((time, i) => time && small.reduce((sum, { values }) => sum + (values[i] ?? 0), 0)),
  };
  return rest.toSpliced(last === -1 ? rest.length : last, 0, together);
}

function barTable({ bars, times_ms: times }: ComparedWaterfall, count: number): Block {
  const none = 'it has no waterfall of the stage';
  const row = (head: Text, label: Text, values: readonly (number | null)[]): Row => ({
    cells: [
      head,
      ...values.map((ms): Text => (ms === null ? { missing: none } : { n: ms, unit: 'ms' })),
      ...values.slice(1).flatMap((ms) => timeChange(values[0] ?? null, ms, none)),
      label,
    ],
  });
  const meaning: Column = { id: 'meaning', head: 'what it is', wraps: true, drop: 0 };
  return {
    t: 'table',
    title: 'The bars sum to the time of each session',
    columns: [{ id: 'bar', head: 'bar' }, ...sideColumns(count, 'ms'), ...changeColumns(count), meaning],
    rows: [
      ...bars.map(({ id, label, values }) => row({ code: id }, label, values)),
      row(
        { text: 'measured', tone: 'strong' },
        '',
        times.map((time) => time && time.value),
      ),
    ],
  };
}

const sourceOf = (index: number): string => `waterfall-${letter(index)}`;

/** What a page draws: each side's waterfalls to one scale, and the differences of a pair. */
export function waterfallSources({ waterfalls, sessions }: CompareResult): Record<string, WaterfallData> {
  const longest_ms = Math.max(
    0,
    ...waterfalls.flatMap(({ times_ms: times }) => times.map((time) => time?.value ?? 0)),
  );
  const sides = sessions.map((_, index): [string, WaterfallData] => [
    sourceOf(index),
    { stages: waterfalls.flatMap((one) => stageOf(one, index) ?? []), longest_ms },
  ]);
  return {
    ...Object.fromEntries(sides),
    ...(sessions.length === 2 && {
      difference: { stages: waterfalls.flatMap((one) => differenceOf(one) ?? []) },
    }),
  };
}

function stageOf(one: ComparedWaterfall, index: number): WaterfallStage | null {
  const ms = one.times_ms[index]?.value;
  if (!ms) return null;
  return {
    key: one.phase,
    bars: sharedBars(one).map((bar) => ({ ...drawn(bar), ms: bar.values[index] ?? 0 })),
    total: { ms, meaning: one.profiled ? 'a mean instance, under the profiler' : 'a mean instance' },
  };
}

const drawn = ({ id, name, label }: SharedBar) => ({ id, name, label, note: null, confidence: null });

/** The first side's time, each bar's change, and the second side's time. */
function differenceOf(one: ComparedWaterfall): WaterfallStage | null {
  const [from, to] = one.times_ms.map((time) => time?.value ?? null);
  if (!from || !to) return null;
  return {
    key: one.phase,
    bars: [
      { id: 'roofline', name: letter(0), label: 'measured', ms: from, note: null, confidence: null },
      ...sharedBars(one).map((bar) => ({ ...drawn(bar), ms: (bar.values[1] ?? 0) - (bar.values[0] ?? 0) })),
    ],
    total: { ms: to, name: letter(1), meaning: 'measured' },
  };
}
