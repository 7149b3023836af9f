import { opClasses, type OpClass } from '../model/classes.js';
import type { Breakdown, ProfileResult, StageResult } from '../model/documents/profile.js';
import { classColors } from '../vocabulary/colors.js';
import { classLabels, layerText } from '../vocabulary/op-classes.js';
import { stageLabels } from '../vocabulary/stages.js';
import type { Block, Row, Section, Text } from './block.js';
import type { BarsChart } from './chart.js';
import { stagesWithOperators } from './profile-series.js';
import { tableOf } from './table-of.js';

/** Operators shown without a click. */
const visibleOperators = 8;

const ms = (value: number): Text => ({ n: value, unit: 'ms' });
const share = (value: number): Text => ({ n: value, unit: 'ratio' });
const noRoof = { missing: 'the class has no necessary work, or its roof is unknown' };
const knownValue = (value: number | null, unit: string): Text =>
  value === null ? noRoof : { n: value, unit };
const stageText = (kind: string): string => stageLabels[kind as StageResult['kind']] ?? kind;

const noTrace = 'The operator trace of the runtime is missing or could not be read.';

/** Operators of the profiled execution, by class, then one by one. */
export function operatorSection(data: ProfileResult): Section {
  const stages = stagesWithOperators(data);
  return {
    id: 'operators',
    title: 'Operators',
    level: 2,
    blocks:
      stages.length === 0
        ? [{ type: 'missing', what: 'No operator was recorded.', why: noTrace }]
        : [
            {
              type: 'text',
              text: 'From the profiled execution: operators, gaps between and around them, and the remainder sum to the stage.',
            },
            {
              type: 'chart',
              level: 3,
              label: `Share of each operator class in ${stages.map(({ kind }) => stageText(kind)).join(' and ')}`,
              chart: sharesChart(stages),
              behind: sharesTable(stages),
            },
            ...stages.map(({ kind, breakdown }): Block => classTable(kind, breakdown)),
            ...stages.flatMap(({ kind, breakdown }) => topOperators(kind, breakdown)),
          ],
  };
}

/** One series per class, with its time in each of several breakdowns. */
const classSeries = (
  rows: readonly { by_class: readonly { class: OpClass; ms: number }[] }[],
): BarsChart['series'] =>
  opClasses
    .filter((name) => rows.some(({ by_class }) => by_class.some((row) => row.class === name)))
    .map((name) => ({
      name: classLabels[name],
      color: classColors[name],
      values: rows.map(({ by_class }) => by_class.find((row) => row.class === name)?.ms ?? 0),
    }));

/** Time outside operators; together with the classes it sums to the stage. */
const outsideOperators = (breakdown: Breakdown): [name: string, ms: number][] => [
  ['gaps between operators', breakdown.gaps_between_operators_ms],
  ['gaps at the edges', breakdown.gaps_at_edges_ms],
  ['remainder', breakdown.remainder_ms],
];

function sharesChart(stages: ReturnType<typeof stagesWithOperators>): BarsChart {
  const outside = stages.map(({ breakdown }) => outsideOperators(breakdown));
  return {
    form: 'bars',
    kind: 'shares',
    unit: 'ms',
    rows: stages.map(({ kind }) => stageText(kind)),
    series: [
      ...classSeries(stages.map(({ breakdown }) => breakdown)),
      ...(outside[0] ?? []).map(([name], index) => ({
        name,
        color: 'idle' as const,
        values: outside.map((rows) => rows[index]![1]),
      })),
    ],
  };
}

const sharesTable = (stages: ReturnType<typeof stagesWithOperators>): Block => ({
  type: 'table',
  title: 'Share of the profiled time',
  columns: [
    { id: 'class', head: 'class' },
    ...stages.map(({ kind }) => ({ id: `${kind}_share`, head: stageText(kind), numeric: true })),
  ],
  rows: opClasses
    .filter((name) => stages.some(({ breakdown }) => breakdown.by_class.some((row) => row.class === name)))
    .map((name) => ({
      cells: [
        classLabels[name],
        ...stages.map(({ breakdown }): Text => {
          const row = breakdown.by_class.find((classRow) => classRow.class === name);
          return row ? share(row.share) : '';
        }),
      ],
    })),
});

function classTable(kind: string, breakdown: Breakdown): Block {
  const blank = Array.from({ length: 6 }, () => '');
  return {
    type: 'table',
    title: `${stageText(kind)}: mean of ${breakdown.instances} profiled`,
    columns: [
      { id: 'class', head: stageText(kind) },
      { id: 'time_ms', head: 'time', numeric: true },
      { id: 'share', head: 'share', numeric: true },
      { id: 'calls', head: 'calls', numeric: true },
      { id: 'roofline_ms', head: 'roofline', numeric: true },
      { id: 'flop_per_byte', head: 'FLOP/byte', numeric: true, drop: 1, detail: true },
      { id: 'flops_per_s', head: 'FLOP/s', numeric: true, drop: 3, detail: true },
      { id: 'bytes_per_s', head: 'bytes/s', numeric: true, drop: 2, detail: true },
      { id: 'bound', head: 'bound' },
    ],
    rows: [
      ...breakdown.by_class.map((row): Row => ({
        cells: [
          classLabels[row.class],
          ms(row.ms),
          share(row.share),
          { count: row.calls },
          knownValue(row.necessary_ms, 'ms'),
          knownValue(row.intensity_flop_per_byte, ''),
          knownValue(row.achieved_flops_per_s, 'FLOP/s'),
          knownValue(row.achieved_bytes_per_s, 'B/s'),
          row.bound ?? noRoof,
        ],
      })),
      ...outsideOperators(breakdown).map(([name, time]): Row => ({
        cells: [name, ms(time), share(time / breakdown.stage_ms), ...blank],
      })),
      { cells: [{ text: 'profiled', tone: 'strong' }, ms(breakdown.stage_ms), share(1), ...blank] },
    ],
  };
}

/** "1×128×512, 512×1408" from the runtime's "[[1,128,512],[512,1408]]"; other texts unchanged. */
function shapesText(text: string): string {
  try {
    const shapes: unknown = JSON.parse(text);
    if (!Array.isArray(shapes)) return text;
    return shapes
      .map((shape: unknown) => (Array.isArray(shape) ? shape.join('×') : String(shape)))
      .join(', ');
  } catch {
    return text;
  }
}

function topOperators(kind: string, { top_operators: all, instances }: Breakdown): Block[] {
  const table = (title: string, operators: Breakdown['top_operators']): Block =>
    tableOf(
      title,
      [
        { id: 'operator', head: 'operator', wraps: true, cell: ({ name }) => ({ code: name }) },
        { id: 'type', head: 'type', drop: 2, detail: true, cell: ({ op_type }) => op_type },
        { id: 'class', head: 'class', cell: (operator) => classLabels[operator.class] },
        { id: 'layer', head: 'layer', drop: 3, detail: true, cell: ({ layer }) => layerText(layer) },
        { id: 'calls', head: 'calls', numeric: true, cell: ({ calls }) => ({ count: calls }) },
        { id: 'time_ms', head: 'time', numeric: true, cell: (operator) => ms(operator.ms) },
        { id: 'share', head: 'share', numeric: true, cell: (operator) => share(operator.share) },
        {
          id: 'input_shapes',
          head: 'input shapes',
          drop: 1,
          cell: ({ input_shapes: shapes }) =>
            shapes === null ? { missing: 'shapes were not recorded' } : { code: shapesText(shapes) },
        },
      ],
      operators,
      { reasons: false },
    );
  const more = all.slice(visibleOperators);
  return [
    { type: 'heading', text: `Largest operators: ${stageText(kind)}` },
    table(`Mean of ${instances} profiled`, all.slice(0, visibleOperators)),
    ...(more.length > 0
      ? [
          {
            type: 'fold',
            level: 3,
            title: `${more.length} more`,
            blocks: [table(`Further operators of ${stageText(kind)}`, more)],
          } satisfies Block,
        ]
      : []),
  ];
}

export function layerSection(data: ProfileResult): Section[] {
  const stages = stagesWithOperators(data).filter(({ breakdown }) => breakdown.by_layer.length > 0);
  if (stages.length === 0) return [];
  return [
    {
      id: 'layers',
      title: 'Operators by layer',
      level: 3,
      blocks: stages.map(({ kind, breakdown: { by_layer: layers } }): Block => {
        const classes = opClasses.filter((name) =>
          layers.some(({ by_class }) => by_class.some((row) => row.class === name)),
        );
        return {
          type: 'chart',
          half: true,
          title: stageText(kind),
          label: `Operator time of ${stageText(kind)} by decoder layer, stacked by class`,
          chart: {
            form: 'bars',
            kind: 'stacked',
            unit: 'ms',
            axis: 'decoder layer',
            rows: layers.map(({ layer }) => (layer === null ? 'outside' : String(layer))),
            series: classSeries(layers),
          },
          behind: {
            type: 'table',
            title: `${stageText(kind)}: operator time by layer`,
            columns: [
              { id: 'layer', head: 'layer' },
              { id: 'time_ms', head: 'all', numeric: true },
              ...classes.map((name) => ({ id: `${name}_ms`, head: classLabels[name], numeric: true })),
            ],
            rows: layers.map((layer) => ({
              cells: [
                layerText(layer.layer),
                ms(layer.ms),
                ...classes.map((name): Text => {
                  const classRow = layer.by_class.find((row) => row.class === name);
                  return classRow ? ms(classRow.ms) : '';
                }),
              ],
            })),
          },
        };
      }),
    },
  ];
}
