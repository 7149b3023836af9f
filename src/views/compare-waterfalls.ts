import type { ComparedWaterfall, CompareResult } from '../model/documents/compare.js';
import type { Bars, BarSide, Block, Column, Row, Text } from './block.js';
import { always, smallShare, stageHead, drawnBar, measuredTotal, stageRank } from './explain-series.js';
import type { WaterfallChart } from './chart.js';
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
        drawn: {
          label: `${letter(index)} · ${name ?? id}`,
          chart: sideChart(waterfall, index),
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
          ? { missing: 'the session has no waterfall of the stage' }
          : { figure: time, spread: 'interval' },
      ]),
      profiled ? ' under the profiler' : '',
    ].flat(),
    sides,
    ...(sides.length === 2 && {
      difference: {
        chart: differenceChart(waterfall),
        label: `From ${sides[0]!.label} to ${sides[1]!.label}: change of each bar`,
      },
    }),
    behind: barTable(waterfall, sessions.length),
  };
}

/** Bars under 1 % of every side's time as one before `unattributed`. */
function sharedBars({ bars, times_ms: times }: ComparedWaterfall): SharedBar[] {
  const shown = bars.map(({ id, label, values }): SharedBar => ({ id, name: label, label, values }));
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
    label: `${small.length} smaller: ${small.map(({ name }) => name).join(', ')}`,
    values: times.map((time, i) => time && small.reduce((sum, { values }) => sum + (values[i] ?? 0), 0)),
  };
  return rest.toSpliced(last === -1 ? rest.length : last, 0, together);
}

function barTable({ bars, times_ms: times }: ComparedWaterfall, count: number): Block {
  const none = 'the session has no waterfall of the stage';
  const row = (head: Text, label: Text, values: readonly (number | null)[]): Row => ({
    cells: [
      head,
      ...values.map((ms): Text => (ms === null ? { missing: none } : { n: ms, unit: 'ms' })),
      ...values.slice(1).flatMap((ms) => timeChange(values[0] ?? null, ms, none)),
      label,
    ],
  });
  const meaning: Column = { id: 'meaning', head: 'meaning', wraps: true, drop: 0 };
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

/** All sides of a stage to one scale; a request of seconds would leave nothing of a step of milliseconds. */
function sideChart(waterfall: ComparedWaterfall, index: number): WaterfallChart {
  const longest = Math.max(0, ...waterfall.times_ms.map((time) => time?.value ?? 0));
  return {
    form: 'waterfall',
    unit: 'ms',
    longest,
    bars: sharedBars(waterfall).map(({ id, name, label, values }) => ({
      ...drawnBar(id, name, values[index] ?? 0),
      meaning: label,
    })),
    total: measuredTotal(waterfall.times_ms[index]?.value ?? 0, waterfall.profiled),
  };
}

/** The first side's time, each bar's change, and the second side's time. */
function differenceChart(waterfall: ComparedWaterfall): WaterfallChart {
  const [from = 0, to = 0] = waterfall.times_ms.map((time) => time?.value ?? 0);
  return {
    form: 'waterfall',
    unit: 'ms',
    signed: true,
    bars: [
      { ...drawnBar('roofline', letter(0), from), meaning: 'measured' },
      ...sharedBars(waterfall).map(({ id, name, label, values }) => ({
        ...drawnBar(id, name, (values[1] ?? 0) - (values[0] ?? 0)),
        meaning: label,
      })),
    ],
    total: { name: letter(1), value: to, meaning: 'measured', whole: 'the measured time' },
  };
}
