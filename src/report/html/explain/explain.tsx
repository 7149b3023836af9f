import type { Child, FC } from 'hono/jsx';
import { raw } from 'hono/html';
import type { Document } from '../../../model/document.js';
import type { ExplainResult, StageWaterfall } from '../../../model/documents/explain.js';
import { type WaterfallData, waterfallChart } from '../../charts/explain/waterfall.js';
import { slowestFirst } from '../../../model/explain-words.js';
import { explainedBars, headlineTime, isProfiled } from '../../../model/headline-time.js';
import { leadingStages, stageKey, stageName, stagesInOrder, timeLines } from '../../explain-rows.js';
import {
  formatCount,
  formatFigure,
  formatFigureWithSpread,
  formatMs,
  formatMsColumn,
  formatPercent,
} from '../../format.js';
import { inlineJson } from '../inline.js';
import { Absent, Behind, ChartFrame, DataTable } from '../parts.js';
import { Findings } from './findings.js';

/** A part of a page that carries an explanation beside its own document. */
export interface ExplainPart {
  id: string;
  title: string;
  body: Child;
}

/** Waterfalls beyond this are folded away: a benchmark has two a point. */
const atOnce = 2;

/** The waterfall and the findings, for the top of any page of a session; none without an explanation. */
export function explainParts(
  explain: Document<ExplainResult> | null | undefined,
  { waterfall = true }: { waterfall?: boolean } = {},
): ExplainPart[] {
  if (!explain) return [];
  const { data } = explain;
  return [
    ...(waterfall
      ? [{ id: 'waterfall', title: 'Where the time goes', body: <Waterfalls data={data} /> }]
      : []),
    { id: 'findings', title: 'Findings', body: <Findings data={data} /> },
  ];
}

/** Three sentences for someone in a hurry. */
export const Sentences: FC<{ explain: Document<ExplainResult> | null | undefined }> = ({ explain }) =>
  explain ? (
    <ol class="help" aria-label="In three sentences">
      {explain.data.sentences.map((sentence) => (
        <li>{sentence}</li>
      ))}
    </ol>
  ) : null;

const Waterfalls: FC<{ data: ExplainResult }> = ({ data }) => {
  const stages = stagesInOrder(data);
  const slim: WaterfallData = {
    stages: stages.map(({ kind, name, point, execution_id, source, measured_ms, clean_ms, bars }) => ({
      kind,
      name,
      point,
      execution_id,
      source,
      measured_ms,
      clean_ms,
      bars: bars.map((bar) => ({ ...bar, sql: null, parts: [] })),
    })),
  };
  const { full: shown, brief: more } = leadingStages(data, atOnce);
  return (
    <>
      {stages.length > 0 && (
        <p>
          From the time the hardware's roofline allows to the time that was measured, a mean instance of each
          stage. Each bar starts where the one before it ends, and they sum to the measured time; parts under
          1&nbsp;% are drawn as one.
        </p>
      )}
      {shown.map((stage) => (
        <Waterfall stage={stage} data={slim} />
      ))}
      {more.length > 0 && (
        <Behind title={`${more.length} more stages`}>
          {more.map((stage) => (
            <BarTable stage={stage} titled />
          ))}
        </Behind>
      )}
      {data.without_waterfall.map(({ stage, reason }) => (
        <Absent what={`No waterfall${stage === null ? '' : ` of ${stage}`}.`} why={`${reason}.`} />
      ))}
      <script type="application/json" id="explain-data">
        {raw(inlineJson({ data: slim }))}
      </script>
    </>
  );
};

function headOf(stage: StageWaterfall): string {
  const roofline =
    stage.roofline_ms.value === null ? '' : `; the roofline allows ${formatMs(stage.roofline_ms.value)}`;
  const name = stageName(stage);
  return `${name.charAt(0).toUpperCase()}${name.slice(1)}: ${formatFigure(headlineTime(stage))}${isProfiled(stage) ? ' under the profiler' : ''}${roofline}`;
}

const Waterfall: FC<{ stage: StageWaterfall; data: WaterfallData }> = ({ stage, data }) => {
  const key = stageKey(stage);
  return (
    <div id={`waterfall-${key}`}>
      <h3>{headOf(stage)}</h3>
      <ChartFrame
        name="waterfall"
        part={key}
        source="explain"
        label={`Bars from the roofline to the measured time. ${headOf(stage)}`}
        height={waterfallChart.height(data, key)}
        zooms={false}
      >
        <BarTable stage={stage} />
      </ChartFrame>
      <Facts stage={stage} />
    </div>
  );
};

const Facts: FC<{ stage: StageWaterfall }> = ({ stage }) => {
  const { measured_ms, clean_ms, clock, clock_why, roofs, roofline_ms, ranks, source } = stage;
  const lines = [
    `${isProfiled(stage) || (clean_ms.value !== null && source === 'trace') ? 'Under the profiler' : 'Measured'}: ${formatFigureWithSpread(measured_ms)}, by the ${clock}'s clock: ${clock_why}.`,
    ...(source === 'trace'
      ? [
          clean_ms.value === null
            ? `Without the profiler: not known, ${clean_ms.reason.text}.`
            : `Without the profiler: ${formatFigureWithSpread(clean_ms)}.`,
        ]
      : []),
    ...(roofline_ms.value === null ? [`No roofline: ${roofline_ms.reason.text}.`] : []),
    ...roofs.map((roof) => `Roof: ${roof}.`),
    ...(ranks.length > 1
      ? [
          `Bars are of the ${slowestFirst(stage) ? 'slowest' : 'first'} of ${ranks.length}: ${ranks
            .map(
              ({ rank, device, measured_ms: ms }) =>
                `rank ${rank ?? '–'}, GPU ${device ?? '–'}: ${formatMs(ms)}`,
            )
            .join('; ')}.`,
        ]
      : []),
  ];
  return (
    <ul class="notes">
      {lines.map((line) => (
        <li>{line}</li>
      ))}
    </ul>
  );
};

const BarTable: FC<{ stage: StageWaterfall; titled?: boolean }> = ({ stage, titled = false }) => {
  const { bars } = explainedBars(stage.bars);
  const totals = timeLines(stage);
  const times = formatMsColumn([...bars, ...totals].map(({ ms }) => ms));
  const withSql = stage.bars.filter(({ sql }) => sql !== null);
  return (
    <>
      <DataTable
        caption={titled ? headOf(stage) : 'The bars sum to the measured time'}
        columns={[
          { head: 'bar' },
          { head: 'ms', numeric: true },
          { head: 'share', numeric: true },
          { head: 'count', numeric: true },
          { head: 'confidence' },
          { head: 'what it is', wraps: true },
        ]}
        rows={[
          ...bars.map((bar, index) => [
            <code>{bar.id}</code>,
            times[index],
            formatPercent(bar.share),
            bar.count === null ? '' : formatCount(Math.round(bar.count)),
            <span title={bar.confidence_why}>{bar.confidence}</span>,
            [
              bar.label,
              ...(bar.note === null ? [] : [bar.note]),
              ...(bar.parts.length > 0
                ? [bar.parts.map(({ label, ms }) => `${label} ${formatMs(ms)}`).join(', ')]
                : []),
            ].join('. '),
          ]),
          ...totals.map(({ name }, index) => [
            <strong>{name}</strong>,
            times[bars.length + index],
            index === 0 ? formatPercent(1) : '',
            '',
            '',
            '',
          ]),
        ]}
      />
      {withSql.length > 0 && !titled && (
        <Behind title={`Queries behind the bars (${withSql.length})`}>
          {withSql.map(({ id, sql }) => (
            <Behind title={id}>
              <pre>{sql}</pre>
            </Behind>
          ))}
        </Behind>
      )}
    </>
  );
};
