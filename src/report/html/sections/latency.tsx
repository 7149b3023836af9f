import type { Figure } from '../../../model/figure.js';
import { repeatLabels } from '../../charts/latency.js';
import { formatCount, formatMs, formatNumber, noValue } from '../../format.js';
import { missingReasons } from '../../words.js';
import { Absent, ChartBox, DataTable, FigureText, MissingNotes } from '../parts.js';
import type { Section } from '../section.js';

export const latencySection: Section = {
  id: 'latency',
  title: 'Latency',
  render: ({ data: result }) => {
    const { latency } = result;
    const figures: [string, Figure][] = [
      ['TTFT', latency.ttft_ms],
      ['TPOT', latency.tpot_ms],
      ['end to end', latency.e2e_ms],
      ['input tokens / TTFT', latency.prefill_tokens_per_s],
      ['decode throughput', latency.decode_tokens_per_s],
      ['output tokens over the whole', latency.output_tokens_per_s],
    ];
    const labels = repeatLabels(latency.per_repeat);
    const percentiles = latency.decode_step_percentiles_ms;
    return (
      <>
        <p>
          {formatCount(latency.repeats)} timed repeats in {formatCount(latency.launches)} process{' '}
          {latency.launches === 1 ? 'launch' : 'launches'}, after {formatCount(latency.warmup_repeats)}{' '}
          warm-up repeats that are not counted. Intervals are over repeats, not over tokens. No repeat is left
          out; outliers are marked by a triangle.
        </p>
        <DataTable
          caption="Latency and throughput"
          columns={[{ head: '' }, { head: 'mean', numeric: true }]}
          rows={figures.map(([name, figure]) => [name, <FigureText figure={figure} />])}
        />
        <MissingNotes reasons={missingReasons(figures)} />
        <div class="two">
          <div>
            <h3>Every repeat</h3>
            <ChartBox
              name="repeats"
              result={result}
              label="TTFT, TPOT and end-to-end time of every timed repeat"
            >
              <DataTable
                caption="Repeats in the order they ran"
                columns={[
                  { head: 'launch.repeat', numeric: true },
                  { head: 'iteration', numeric: true },
                  { head: 'TTFT ms', numeric: true },
                  { head: 'TPOT ms', numeric: true },
                  { head: 'end to end ms', numeric: true },
                  { head: '' },
                ]}
                rows={latency.per_repeat.map((repeat, index) => [
                  labels[index],
                  formatCount(repeat.iteration),
                  formatNumber(repeat.ttft_ms, 4),
                  repeat.tpot_ms === null ? noValue : formatNumber(repeat.tpot_ms, 4),
                  formatNumber(repeat.e2e_ms, 4),
                  repeat.outlier ? 'outlier' : '',
                ])}
              />
            </ChartBox>
          </div>
          <div>
            <h3>Decode steps as the context grows</h3>
            {latency.decode_step_by_index_ms.length === 0 ? (
              <Absent what="No decode step was timed." why="One output token has no decode step." />
            ) : (
              <ChartBox name="steps" result={result} label="Mean decode step time by step index">
                <DataTable
                  caption="Mean over repeats"
                  columns={[
                    { head: 'step', numeric: true },
                    { head: 'ms', numeric: true },
                  ]}
                  rows={latency.decode_step_by_index_ms.map((ms, index) => [
                    formatCount(index + 1),
                    formatNumber(ms, 4),
                  ])}
                />
              </ChartBox>
            )}
            {percentiles && (
              <DataTable
                caption="All timed decode steps"
                columns={Object.keys(percentiles).map((head) => ({ head, numeric: true }))}
                rows={[Object.values(percentiles).map((ms) => formatMs(ms))]}
              />
            )}
          </div>
        </div>
      </>
    );
  },
};
