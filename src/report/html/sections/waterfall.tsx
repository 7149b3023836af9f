import type { FC } from 'hono/jsx';
import type { ProfileResult, StageResult } from '../../../model/documents/profile.js';
import type { Figure } from '../../../model/figure.js';
import { formatFigure, formatMsColumn, formatPercent } from '../../format.js';
import { barShareText } from '../../bars.js';
import { barLabel, barMeaning } from '../../names.js';
import { boundWords, missingReasons, stageSentence } from '../../words.js';
import { causesOf } from '../../notices.js';
import { Absent, ChartBox, DataTable } from '../parts.js';
import type { Section } from '../section.js';

const title = (stage: StageResult): string => (stage.kind === 'decode' ? 'One decode step' : 'Prefill');

const Bars: FC<{ stage: StageResult; result: ProfileResult }> = ({ stage, result }) => {
  const measured = stage.duration_ms.value ?? 0;
  const times = formatMsColumn([...stage.bars.map((bar) => bar.ms), measured]);
  return (
    <div>
      <h3>
        {title(stage)}: {formatFigure(stage.duration_ms)}, {boundWords(stage)}
      </h3>
      <ChartBox
        name="bars"
        part={stage.kind}
        result={result}
        label={`Bars from the roofline to the measured time of ${stage.kind}. ${stageSentence(stage)}`}
      >
        <DataTable
          caption={`${title(stage)}: the bars sum to the measured time of the clean execution`}
          columns={[
            { head: 'bar' },
            { head: 'id' },
            { head: 'ms', numeric: true },
            { head: 'share', numeric: true },
            { head: 'confidence' },
            { head: 'meaning' },
          ]}
          rows={[
            ...stage.bars.map((bar, index) => [
              barLabel(bar.id),
              <code>{bar.id}</code>,
              times[index],
              barShareText(bar.ms, measured),
              bar.confidence,
              barMeaning(bar.id),
            ]),
            [<strong>measured</strong>, '', times.at(-1), formatPercent(1), '', ''],
          ]}
        />
      </ChartBox>
    </div>
  );
};

/** " prefill, decode: the run ended before its profiled pass." */
function reasons({ stages }: ProfileResult): string {
  const named = stages
    .filter(({ kind }) => kind !== 'sampling')
    .flatMap((stage): [string, Figure][] => [
      [`${stage.kind} roofline`, stage.roofline_ms],
      [`${stage.kind} by operators`, stage.profiled_ms],
    ]);
  return missingReasons(named)
    .map((reason) => ` Missing: ${reason}.`)
    .join('');
}

export const waterfallSection: Section = {
  id: 'time',
  title: 'Where the time goes',
  render: ({ data, issues }) => {
    const shown = data.stages.filter((stage) => stage.bars.length > 0 && stage.duration_ms.value !== null);
    if (shown.length === 0) {
      return (
        <Absent
          what="No way from the roofline to the measured time can be shown."
          why={`It needs this machine's measured roofline, the model's dimensions and an operator trace.${reasons(data)}`}
          issues={causesOf('operators', issues)}
        />
      );
    }
    return (
      <>
        <p>
          From the time this machine's roofline allows to the time that was measured. Each bar starts where
          the one before it ends; parts under 1&nbsp;% of the time are drawn as one. A bar that goes back
          takes off what the ones before it hold too much of.
        </p>
        <div class="two stacked-on-paper">
          {shown.map((stage) => (
            <Bars stage={stage} result={data} />
          ))}
        </div>
      </>
    );
  },
};
