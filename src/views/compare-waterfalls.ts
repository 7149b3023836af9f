import { isKernelBar } from '../model/bars.js';
import { halfInterval } from '../model/half-interval.js';
import type { ComparedWaterfall, CompareResult } from '../model/documents/compare.js';
import type { WaterfallKind } from '../model/documents/explain.js';
import type { Bars, BarSide, Block, Column, Row, Text } from './block.js';
import {
  isAlwaysShown,
  smallShare,
  stageHead,
  chartBar,
  measuredTotal,
  stageRank,
} from './explain-series.js';
import type { WaterfallChart } from './chart.js';
import { changeColumns, letter, sideColumns, timeChange } from './compare-sides.js';

/** A compared waterfall without its rooflines, which are not drawn. */
type DrawnWaterfall = Omit<ComparedWaterfall, 'roofline_ms'>;

const noWaterfall = 'the session has no waterfall of the stage';

interface SharedBar {
  id: string;
  /** Next to the bar. */
  name: string;
  /** In its tooltip; lists the bars that were summed. */
  label: string;
  values: readonly (number | null)[];
}

/** Texts and columns of the sides of a waterfall. */
interface SideTexts {
  /** In the bars of a chart. */
  short: readonly string[];
  /** Above a chart. */
  long: readonly string[];
  /** How the time of each side was obtained: "measured" or "predicted". */
  timeKinds: readonly string[];
  /** One column of the table per side, then two per change. */
  columns: readonly Column[];
}

/** The waterfall of each stage on every side, and the change from the first to each later side. */
export function waterfallBlocks({ waterfalls, sessions }: CompareResult): Block[] {
  const count = sessions.length;
  const sides = {
    short: sessions.map((_, index) => letter(index)),
    long: sessions.map(({ name, id }, index) => `${letter(index)} · ${name ?? id}`),
    timeKinds: sessions.map(() => 'measured'),
    columns: [...sideColumns(count, 'ms'), ...changeColumns(count)],
  };
  const blocks = inStageOrder(waterfalls).map((waterfall, index): Block => ({
    level: index === 0 ? 1 : 2,
    ...waterfallBars(waterfall, sides),
  }));
  const negative = waterfalls.flatMap((waterfall) =>
    negativeNote(
      sharedBars(waterfall),
      waterfall.times_ms.map((time) => time?.value ?? 0),
    ),
  );
  return [...blocks, ...negative.slice(0, 1)];
}

/** Explains bars below 0, once for all waterfalls of a section; parts of a percent are rounding of the model. */
export const negativeNote = (
  bars: readonly { id: string; values: readonly (number | null)[] }[],
  times_ms: readonly number[],
): Block[] =>
  bars.some(
    ({ id, values }) =>
      isKernelBar(id) && values.some((ms, i) => -(ms ?? 0) > smallShare * (times_ms[i] ?? 0)),
  )
    ? [
        {
          type: 'text',
          text: 'A negative bar: kernels faster than their roofline limit. inferscope explain SESSION says why.',
        },
      ]
    : [];

const inStageOrder = (waterfalls: readonly ComparedWaterfall[]): ComparedWaterfall[] =>
  waterfalls.toSorted((a, b) => stageRank(a.phase) - stageRank(b.phase));

/** Waterfalls of one stage next to each other, on one scale. */
export function waterfallBars(waterfall: DrawnWaterfall, sideTexts: SideTexts): Bars {
  const { phase, profiled, times_ms: times } = waterfall;
  const bars = sharedBars(waterfall);
  const sides = times.flatMap((time, index): BarSide[] => {
    if (time === null) return [];
    return [
      {
        label: sideTexts.short[index]!,
        bars: bars.map((bar) => ({ name: bar.name, ms: bar.values[index] ?? null })),
        totals: [{ name: sideTexts.timeKinds[index]!, ms: time.value ?? 0 }],
        halfInterval: halfInterval(time),
        pageChart: {
          label: sideTexts.long[index]!,
          chart: sideChart(waterfall, index, sideTexts.timeKinds[index]!),
        },
      },
    ];
  });
  return {
    type: 'bars',
    title: [
      `${stageHead({ kind: phase as WaterfallKind, name: null, point: null })}: `,
      ...times.flatMap((time, index): Text[] => [
        index === 0 ? '' : ' → ',
        time === null ? { missing: noWaterfall } : { figure: time, spread: 'interval' },
      ]),
      profiled ? ' under the profiler' : '',
    ].flat(),
    sides,
    ...(times.length === 2 &&
      sides.length === 2 && {
        difference: {
          chart: differenceChart(waterfall, sideTexts),
          label: `From ${sides[0]!.label} to ${sides[1]!.label}: change of each bar`,
        },
      }),
    behind: barTable(waterfall, sideTexts),
  };
}

/**
 * Bars without those that are 0 on every side. Two or more that are at most 1 % of the time of every side are summed
 * before `unattributed`.
 */
function sharedBars({ bars, times_ms: times }: DrawnWaterfall): SharedBar[] {
  const nonzero = bars
    .filter(isNonzero)
    .map(({ id, label, values }): SharedBar => ({ id, name: label, label, values }));
  const small = nonzero.filter(
    ({ id, values }) =>
      !isAlwaysShown(id) && values.every((ms, i) => Math.abs(ms ?? 0) <= smallShare * (times[i]?.value ?? 0)),
  );
  if (small.length < 2) return nonzero;
  const large = nonzero.filter((bar) => !small.includes(bar));
  const unattributedIndex = large.findIndex(({ id }) => id === 'unattributed');
  const merged: SharedBar = {
    id: 'smaller',
    name: `${small.length} smaller`,
    label: `${small.length} smaller: ${small.map(({ name }) => name).join(', ')}`,
    values: times.map((time, i) => {
      const known = small.flatMap(({ values }) => values[i] ?? []);
      return time === null || known.length === 0 ? null : known.reduce((sum, ms) => sum + ms, 0);
    }),
  };
  return large.toSpliced(unattributedIndex === -1 ? large.length : unattributedIndex, 0, merged);
}

/** Less than 1 ns is what rounding leaves of a sum. */
const isNonzero = ({ values }: { values: readonly (number | null)[] }): boolean =>
  values.some((ms) => ms !== null && Math.abs(ms) >= 1e-6);

function barTable({ bars, times_ms: times }: DrawnWaterfall, { columns, timeKinds }: SideTexts): Block {
  const timeName = timeKinds.every((kind) => kind === timeKinds[0]) ? timeKinds[0]! : 'time';
  const whyMissing = (side: number): string =>
    times[side] === null
      ? noWaterfall
      : 'only one of the rooflines is known, and it splits the kernels into bars';
  const row = (name: Text, id: Text, values: readonly (number | null)[]): Row => ({
    cells: [
      name,
      ...values.map((ms, side): Text =>
        ms === null ? { missing: whyMissing(side) } : { n: ms, unit: 'ms' },
      ),
      ...values
        .slice(1)
        .flatMap((ms, index) => timeChange(values[0] ?? null, ms, whyMissing(ms === null ? index + 1 : 0))),
      id,
    ],
  });
  return {
    type: 'table',
    title: 'The bars sum to the time of each side',
    columns: [{ id: 'bar', head: 'bar', wraps: true }, ...columns, { id: 'id', head: 'id', drop: 0 }],
    rows: [
      ...bars.filter(isNonzero).map(({ id, label, values }) => row(label, { code: id }, values)),
      row(
        { text: timeName, tone: 'strong' },
        '',
        times.map((time) => time && time.value),
      ),
    ],
  };
}

/** One side, on the scale of the longest side of its stage: a request takes seconds, a step milliseconds. */
function sideChart(waterfall: DrawnWaterfall, index: number, timeKind: string): WaterfallChart {
  const longest = Math.max(0, ...waterfall.times_ms.map((time) => time?.value ?? 0));
  return {
    form: 'waterfall',
    unit: 'ms',
    longest,
    bars: sharedBars(waterfall).map(({ id, name, label, values }) => ({
      ...chartBar(id, name, values[index] ?? 0),
      meaning: label,
    })),
    total: {
      ...measuredTotal(waterfall.times_ms[index]?.value ?? 0, waterfall.profiled),
      name: timeKind,
      shareOf: `the ${timeKind} time`,
    },
    halfInterval: widestHalf(waterfall),
  };
}

/** A chart takes its number of digits from it, so that all sides have the same. */
const widestHalf = ({ times_ms: times }: DrawnWaterfall): number =>
  Math.max(0, ...times.map((time) => (time && halfInterval(time)) ?? 0));

/** The first side's time, each bar's change, and the second side's time. */
function differenceChart(waterfall: DrawnWaterfall, { short, timeKinds }: SideTexts): WaterfallChart {
  const [from = 0, to = 0] = waterfall.times_ms.map((time) => time?.value ?? 0);
  return {
    form: 'waterfall',
    unit: 'ms',
    signed: true,
    bars: [
      // The first side's time, in the color of a roofline.
      { ...chartBar('roofline', short[0]!, from), meaning: timeKinds[0]! },
      ...sharedBars(waterfall).map(({ id, name, label, values }) => ({
        ...chartBar(id, name, (values[1] ?? 0) - (values[0] ?? 0)),
        meaning: label,
      })),
    ],
    total: { name: short[1]!, value: to, meaning: timeKinds[1]!, shareOf: `the ${timeKinds[1]!} time` },
    halfInterval: widestHalf(waterfall),
  };
}
