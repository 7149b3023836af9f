import { formatCount, formatMs, plural, roundMeanCount } from '../vocabulary/format.js';
import type { ExplainResult, StageWaterfall, WhatIfResult } from '../model/documents/explain.js';
import { barParts, classOfBar } from '../model/bars.js';
import { halfInterval } from '../model/half-interval.js';
import { explainedBars, headlineTime, isProfiled, isSlower } from '../model/headline-time.js';
import { barWords } from '../vocabulary/bars.js';
import { countOfBar, isOnCpu } from './finding-bars.js';
import type { Bar, Bars, Block, Part, Row, Section, Text } from './block.js';
import {
  briefBars,
  largestBars,
  leadingStages,
  type ShownBar,
  shortName,
  shownBars,
  stageHead,
  stageName,
  timeLines,
  waterfallChart,
} from './explain-series.js';
import { whatIfBars } from './what-if-bars.js';
import { barPlace, findingBlocks, type Places, type FindingOptions } from './findings.js';
import { rankName } from '../vocabulary/ranks.js';

/** Waterfall and findings, for the explain page and the top of other pages. */
export function explanationBlocks(data: ExplainResult, options: FindingOptions = {}): Section[] {
  const waterfall = waterfallBlocks(data, options);
  return [
    ...(waterfall.length > 0
      ? [{ id: 'waterfall', title: 'Where the time goes', untitled: true, blocks: waterfall }]
      : []),
    { id: 'findings', title: 'Findings', untitled: true, blocks: findingBlocks(data, options) },
  ];
}

function waterfallBlocks(
  data: ExplainResult,
  { allStages = false, places, whatIf }: FindingOptions,
): Block[] {
  // The headline states why there are no stages.
  if (data.stages.length === 0 && data.without_waterfall.length <= 1) return [];
  const { full, brief } = allStages ? { full: data.stages, brief: [] } : leadingStages(data);
  return [
    ...full.flatMap((stage, index): Block[] => [
      ...predictionBlocks(stage, whatIf),
      barsOf(stage, index === 0 ? 1 : 2, places),
      ...rankLine(stage, index === 0 ? 1 : 2),
      { type: 'notes', level: 3, items: clockLines(stage) },
      ...queriesOf(stage),
    ]),
    ...(brief.length > 0
      ? ([
          otherStages(brief),
          {
            type: 'fold',
            level: 3,
            title: `Bars of ${plural(brief.length, 'other stage')}`,
            blocks: brief.flatMap((stage): Block[] => [
              { type: 'heading', text: headOf(stage) },
              barTable(stage, places),
            ]),
          },
        ] satisfies Block[])
      : []),
    ...data.without_waterfall.map(({ stage: kind, reason }): Block => ({
      type: 'missing',
      level: 2,
      what: `No waterfall${kind === null ? '' : ` of ${kind}`}:`,
      why: `${reason}.`,
    })),
    ...(full.length > 0 ? [waterfallText] : []),
  ];
}

const waterfallText: Block = {
  type: 'text',
  level: 3,
  text: 'A mean instance of each stage, from its roofline, where that is known, to the measured time. Each bar starts at the end of the previous one; bars sum to the measured time, without what a profiler added. Several parts under 1 % are merged.',
};

/** The predicted waterfall of a stage under a change, shown above the measured one. */
function predictionBlocks(stage: StageWaterfall, whatIf: WhatIfResult | undefined): Block[] {
  const prediction = whatIf?.stages.find(({ kind, point }) => kind === stage.kind && point === stage.point);
  return whatIf && prediction ? whatIfBars(stage, prediction, whatIf.change) : [];
}

/** "Decode step: 4.45 ms ± 0.12 (95 %, n = 7082) under the profiler": the first bar is the roofline. */
function headOf(stage: StageWaterfall): Text {
  return [
    `${stageHead(stage)}: `,
    { figure: headlineTime(stage), spread: true },
    ...(isProfiled(stage) ? [' under the profiler'] : []),
  ];
}

/** Maximum bars in a summary besides roofline and "smaller". */
const barsInSummary = 4;

const barOf = (bar: ShownBar, isCpu: boolean): Bar => ({
  name: shortName(bar),
  ms: bar.ms,
  notes: notesOf(bar, isCpu),
});

function barsOf(stage: StageWaterfall, level: 1 | 2, places?: Places): Bars & { level: 1 | 2 } {
  return {
    type: 'bars',
    level,
    title: headOf(stage),
    sides: [
      {
        label: '',
        bars: shownBars(stage).map((bar) => barOf(bar, isOnCpu(stage))),
        brief: briefBars(stage, barsInSummary).map((bar) => barOf(bar, isOnCpu(stage))),
        totals: timeLines(stage),
        halfInterval: halfInterval(headlineTime(stage)),
        pageChart: {
          label: 'Bars from the roofline to the measured time',
          chart: waterfallChart(stage, (bar) => places?.get(barPlace(stage.kind, bar))?.link),
        },
      },
    ],
    behind: barTable(stage, places),
  };
}

/** Short notes after a bar: its largest part, or its number of kernels (on a CPU: operators), copies or gaps. */
function notesOf(bar: ShownBar, isCpu: boolean): Text[] {
  const [largest] = bar.parts;
  if (bar.ms < 0 && bar.note !== null) return [bar.note];
  const { head } = barParts(bar.id);
  if ((head === 'synchronization' || head === 'host' || classOfBar(bar.id) === 'other') && largest)
    return [largest.label];
  const count = countOfBar(bar, isCpu);
  if (count === null || bar.count === null) return [];
  return [
    count,
    ...(bar.id === 'launch_overhead' && bar.count >= 1.5
      ? [[{ n: bar.ms / bar.count, unit: 'ms' as const }, ' each']]
      : []),
  ];
}

function barTable(stage: StageWaterfall, places?: Places): Block {
  const { bars } = explainedBars(stage.bars);
  return {
    type: 'table',
    title: 'The bars sum to the measured time',
    columns: [
      { id: 'bar', head: 'bar', wraps: true },
      { id: 'time_ms', head: 'time', numeric: true },
      { id: 'share', head: 'share', numeric: true },
      { id: 'count', head: 'count', numeric: true, detail: true },
      { id: 'confidence', head: 'confidence', detail: true },
      { id: 'meaning', head: 'meaning', wraps: true },
      { id: 'id', head: 'id', detail: true },
    ],
    rows: [
      ...bars.map((bar): Row => ({
        cells: [
          places?.get(barPlace(stage.kind, bar.id)) ?? bar.label,
          { n: bar.ms, unit: 'ms' },
          { n: bar.share, unit: 'ratio' },
          bar.count === null ? '' : { count: roundMeanCount(bar.count) },
          { text: bar.confidence, hint: bar.confidence_why },
          meaningOf(bar, stage),
          { code: bar.id },
        ],
      })),
      ...timeLines(stage).map(({ name, ms }, index): Row => ({
        cells: [
          { text: name, tone: 'strong' },
          { n: ms, unit: 'ms' },
          index === 0 ? { n: 1, unit: 'ratio' } : '',
          '',
          '',
          '',
          '',
        ],
      })),
    ],
  };
}

function meaningOf(
  { id, note, parts, confidence_why }: StageWaterfall['bars'][number],
  { source }: StageWaterfall,
): Text {
  // The meanings are of a timeline's bars; those of a request are a client's and a server's.
  const general = source === 'serving' ? (note === null ? confidence_why : null) : barWords(id).meaning;
  const barMeaning = [general, note].filter((text) => text !== null).join('; ');
  return [
    barMeaning,
    ...parts.flatMap((part, index): Part[] => [
      `${index > 0 ? ', ' : barMeaning === '' ? '' : '; '}${part.label} `,
      { n: part.ms, unit: 'ms' },
    ]),
  ];
}

/** Maximum listed ranks (one node of eight GPUs); with more, the first ones and a range of the others. */
const maxRanks = 8;

function rankLine(stage: StageWaterfall, level: 1 | 2): Block[] {
  const { ranks, ranks_recorded: recorded } = stage;
  // The headline then shows the time without the profiler, which these times would contradict.
  const profiled = stage.source === 'trace' && stage.clean_ms.value !== null ? ' under the profiler' : '';
  if (ranks.length < 2) return [];
  const labels = ranks.map(({ measured_ms: ms }) => formatMs(ms));
  // Ranks that take as long as those that are not listed are not outliers.
  const outliers = labels.findLastIndex(
    (label, index) => index < maxRanks / 2 && label !== labels[index + 1],
  );
  const listed = ranks.slice(
    0,
    new Set(labels).size > 1 && ranks.length <= maxRanks ? ranks.length : outliers + 1,
  );
  const unlistedMs = ranks.slice(listed.length).map(({ measured_ms: ms }) => ms);
  const shortest = { n: Math.min(...unlistedMs), unit: 'ms' } as const;
  const longest = { n: Math.max(...unlistedMs), unit: 'ms' } as const;
  const isRange = formatMs(shortest.n) !== formatMs(longest.n);
  const others =
    listed.length === 0
      ? `all ${formatCount(unlistedMs.length)}`
      : `; the other ${formatCount(unlistedMs.length)}`;
  return [
    {
      type: 'text',
      level,
      text: [
        `Time by rank${profiled}${recorded === undefined ? '' : `, ${ranks.length} of ${formatCount(recorded)} compared`}: `,
        ...listed.flatMap(({ rank, device, measured_ms: ms }, index): Part[] => [
          `${index === 0 ? '' : ', '}${rankName({ rank, device })} `,
          { n: ms, unit: 'ms' },
        ]),
        ...(unlistedMs.length === 0
          ? []
          : [`${others} take `, shortest, ...(isRange ? [' to ', longest] : [])]),
        '.',
      ],
    },
  ];
}

const slowerNote = ({ clean_ms, measured_ms }: StageWaterfall): string =>
  measured_ms.value !== null && isSlower(clean_ms.value, measured_ms.value)
    ? ' The clean run was slower; the difference counts as GPU work or as idle time, whichever is larger.'
    : '';

function clockLines(stage: StageWaterfall): Text[] {
  const { measured_ms, clean_ms, clock, clock_why, roofs, source } = stage;
  const underProfiler = isProfiled(stage) || (clean_ms.value !== null && source === 'trace');
  return [
    [
      underProfiler ? 'Under the profiler: ' : 'Measured: ',
      { figure: measured_ms, spread: true },
      `, by the ${clock}'s clock: ${clock_why}.`,
    ],
    ...(source === 'trace'
      ? [
          clean_ms.value === null
            ? `Without the profiler: unknown, ${clean_ms.reason.text}.`
            : ([
                'Without the profiler: ',
                { figure: clean_ms, spread: true },
                `.${slowerNote(stage)}`,
              ] satisfies Part[]),
        ]
      : []),
    ...roofs.map((roof) => `Roof: ${roof}.`),
  ];
}

function queriesOf({ bars }: StageWaterfall): Block[] {
  const queries = bars.flatMap(({ id, sql }) => (sql === null ? [] : [{ id, sql }]));
  if (queries.length === 0) return [];
  return [
    {
      type: 'fold',
      level: 3,
      title: `Queries behind the bars (${queries.length})`,
      blocks: queries.map(({ id, sql }) => ({
        type: 'fold',
        title: id,
        blocks: [{ type: 'lines', text: sql }],
      })),
    },
  ];
}

/** Stages without bars: their time, and its largest part. */
const otherStages = (stages: readonly StageWaterfall[]): Block => ({
  type: 'table',
  level: 2,
  title: 'Other stages',
  columns: [
    { id: 'stage', head: 'other stages' },
    { id: 'time_ms', head: 'time', numeric: true },
    { id: 'instances', head: 'n', numeric: true },
    { id: 'largest', head: 'largest part', wraps: true },
  ],
  rows: stages.map((stage) => ({
    cells: [
      stageName(stage),
      { n: headlineTime(stage).value ?? 0, unit: 'ms' },
      { count: stage.instances },
      largestBars(stage, 1).flatMap(({ label, share }): Part[] => [{ n: share, unit: 'ratio' }, ` ${label}`]),
    ],
  })),
});
