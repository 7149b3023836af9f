import type { FC } from 'hono/jsx';
import { opClasses } from '../../../model/classes.js';
import type { Breakdown } from '../../../model/documents/profile.js';
import { stagesWithOperators } from '../../charts/classes.js';
import {
  formatCount,
  formatMs,
  formatMsColumn,
  formatNumber,
  formatPercent,
  formatQuantity,
  noValue,
} from '../../format.js';
import { layerName } from '../../names.js';
import { causesOf } from '../../notices.js';
import { Absent, Behind, ChartBox, ClassLegend, DataTable, Swatch } from '../parts.js';
import type { Section } from '../section.js';

/** Top operators shown without a click. */
const shownAtOnce = 8;

const orDash = (value: number | null, format: (value: number) => string): string =>
  value === null ? noValue : format(value);

const ClassTable: FC<{ kind: string; breakdown: Breakdown }> = ({ kind, breakdown }) => {
  const others: [string, number][] = [
    ['gaps between operators', breakdown.gaps_between_operators_ms],
    ['gaps at the edges', breakdown.gaps_at_edges_ms],
    ['remainder', breakdown.remainder_ms],
  ];
  const times = formatMsColumn([
    ...breakdown.by_class.map((row) => row.ms),
    ...others.map(([, ms]) => ms),
    breakdown.stage_ms,
  ]);
  const blank = Array.from({ length: 6 }, () => '');
  return (
    <DataTable
      caption={`${kind} by operator class: mean of ${formatCount(breakdown.instances)} profiled; classes, gaps and remainder sum to the stage`}
      columns={[
        { head: 'class' },
        { head: 'ms', numeric: true },
        { head: 'share', numeric: true },
        { head: 'calls', numeric: true },
        { head: 'roofline ms', numeric: true },
        { head: 'FLOP/byte', numeric: true },
        { head: 'achieved', numeric: true },
        { head: 'achieved', numeric: true },
        { head: 'bound' },
      ]}
      rows={[
        ...breakdown.by_class.map((row, index) => [
          <Swatch class={row.class} />,
          times[index],
          formatPercent(row.share),
          formatCount(row.calls),
          orDash(row.necessary_ms, (ms) => formatNumber(ms)),
          orDash(row.intensity_flop_per_byte, (value) => formatNumber(value)),
          orDash(row.achieved_flops_per_s, (value) => formatQuantity(value, 'FLOP/s')),
          orDash(row.achieved_bytes_per_s, (value) => formatQuantity(value, 'B/s')),
          row.bound ?? noValue,
        ]),
        ...others.map(([name, ms], index) => [
          name,
          times[breakdown.by_class.length + index],
          formatPercent(ms / breakdown.stage_ms),
          ...blank,
        ]),
        [<strong>{kind}, profiled</strong>, times.at(-1), formatPercent(1), ...blank],
      ]}
    />
  );
};

const TopOperators: FC<{ kind: string; breakdown: Breakdown }> = ({ kind, breakdown }) => (
  <>
    <h3>Operators that take most of {kind}</h3>
    <OperatorTable
      caption={`Mean of ${formatCount(breakdown.instances)} profiled ${kind} stages`}
      operators={breakdown.top_operators.slice(0, shownAtOnce)}
    />
    {breakdown.top_operators.length > shownAtOnce && (
      <Behind title={`${formatCount(breakdown.top_operators.length - shownAtOnce)} more`}>
        <OperatorTable
          caption={`Further operators of ${kind}`}
          operators={breakdown.top_operators.slice(shownAtOnce)}
        />
      </Behind>
    )}
  </>
);

/** "1×128×512, 512×1408" of the runtime's "[[1,128,512],[512,1408]]"; any other text as it is. */
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

const OperatorTable: FC<{ caption: string; operators: Breakdown['top_operators'] }> = ({
  caption,
  operators,
}) => (
  <DataTable
    caption={caption}
    columns={[
      { head: 'operator' },
      { head: 'type' },
      { head: 'class' },
      { head: 'layer' },
      { head: 'calls', numeric: true },
      { head: 'time', numeric: true },
      { head: 'share', numeric: true },
      { head: 'input shapes' },
    ]}
    rows={operators.map((operator) => [
      <code>{operator.name}</code>,
      operator.op_type,
      <Swatch class={operator.class} />,
      operator.layer === null ? 'outside' : layerName(operator.layer),
      formatCount(operator.calls),
      formatMs(operator.ms),
      formatPercent(operator.share),
      operator.input_shapes === null ? noValue : <code>{shapesText(operator.input_shapes)}</code>,
    ])}
  />
);

export const operatorsSection: Section = {
  id: 'operators',
  title: 'Operators by class',
  render: ({ data, issues }) => {
    const stages = stagesWithOperators(data);
    if (stages.length === 0) {
      return (
        <Absent
          what="No operator was recorded."
          why="The runtime's operator trace is missing or could not be read."
          issues={causesOf('operators', issues)}
        />
      );
    }
    const present = opClasses.filter((opClass) =>
      stages.some(({ breakdown }) => breakdown.by_class.some((row) => row.class === opClass)),
    );
    return (
      <>
        <p>
          From the profiled execution: operators, the gaps between them and at the edges of a stage, and what
          is left sum to the stage.
        </p>
        <ClassLegend classes={present} idle />
        <ChartBox
          name="classes"
          result={data}
          label={`Share of each operator class in ${stages.map(({ kind }) => kind).join(' and ')}`}
        >
          {stages.map((stage) => (
            <ClassTable {...stage} />
          ))}
        </ChartBox>
        {stages.map((stage) => (
          <TopOperators {...stage} />
        ))}
      </>
    );
  },
};
