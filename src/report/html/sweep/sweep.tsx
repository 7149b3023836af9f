import type { FC, PropsWithChildren } from 'hono/jsx';
import type { Document } from '../../../model/document.js';
import type { SweepResult, SweepRun } from '../../../model/documents/sweep.js';
import type { Chart } from '../../charts/chart.js';
import { type SweepChartName, sweepCharts } from '../../charts/registry.js';
import { formatBytes, formatCount, noValue } from '../../format.js';
import { sweepMaps, type SweepMap } from '../../sweep-maps.js';
import {
  figureName,
  figureText,
  parameterName,
  secondsText,
  shownFiguresOf,
  shownParameters,
  sweepCounts,
  sweepOutcomeWords,
  valueText,
} from '../../sweep-words.js';
import { documentPage, type PageSection } from '../document-page.js';
import { Behind, ChartFrame, type Column, DataTable } from '../parts.js';

type Section = PageSection<SweepResult>;

const SweepChart: FC<
  PropsWithChildren<{ name: SweepChartName; result: SweepResult; part: string; label: string }>
> = ({ name, result, part, label, children }) => {
  const chart: Chart<SweepResult> = sweepCharts[name];
  return (
    <ChartFrame name={name} part={part} label={label} height={chart.height(result, part)} zooms={false}>
      {children}
    </ChartFrame>
  );
};

const timesWords = (count: number): string =>
  count === 1 ? 'once' : count === 0 ? 'not at all' : `${formatCount(count)} times`;

const numeric = (head: string): Column => ({ head, numeric: true });

const Summary: FC<{ document: Document<SweepResult> }> = ({ document: { data } }) => {
  const seconds = data.runs.reduce((sum, run) => sum + (run.duration_s ?? 0), 0);
  const failed = data.runs.filter(({ failure }) => failure !== null).length;
  return (
    <header id="summary">
      <p class="kicker">
        inferscope sweep · {data.stamp} · {data.started_at.slice(0, 16).replace('T', ' ')} UTC
      </p>
      <h1>{data.name ?? `${formatCount(data.runs.length)} configurations`}</h1>
      <p>
        {sweepCounts(data.runs)}; {secondsText(seconds)} in all.
        {failed > 0 && (
          <>
            {' '}
            <a href="#failures">What failed, and why</a>.
          </>
        )}
        {data.status !== 'complete' &&
          ` The sweep was ${data.status}: inferscope sweep --resume goes on with it.`}
      </p>
      <noscript>
        <p>The charts need JavaScript; every chart has its numbers in a table below it.</p>
      </noscript>
    </header>
  );
};

const runsSection: Section = {
  id: 'runs',
  title: 'Runs',
  render: ({ data }) => {
    const parameters = shownParameters(data);
    const figures = shownFiguresOf(data);
    const labelled = data.runs.some((run) => run.figures.length > 1);
    const rows = data.runs.flatMap((run) =>
      (run.figures.length > 0 ? run.figures : [{ label: null, values: {} as Record<string, number> }]).map(
        (one) => ({
          run,
          ...one,
        }),
      ),
    );
    return (
      <DataTable
        caption="Every run with its main figures; the CSV has all of them"
        filter
        columns={[
          numeric('run'),
          ...parameters.map((name) => ({
            head: parameterName(name),
            numeric: data.runs.every((run) => typeof run.parameters[name] === 'number'),
          })),
          ...(labelled ? [{ head: 'point' }] : []),
          ...figures.map((name) => numeric(figureName(name))),
          numeric('took'),
          { head: 'outcome' },
          { head: 'session' },
        ]}
        rows={rows.map(({ run, label, values }) => [
          formatCount(run.number),
          ...parameters.map((name) => valueText(run.parameters[name])),
          ...(labelled ? [label ?? ''] : []),
          ...figures.map((name) => figureText(name, values[name])),
          secondsText(run.duration_s),
          `${sweepOutcomeWords[run.outcome]}${run.attempts > 1 ? ` (try ${run.attempts})` : ''}`,
          run.session_id === null ? noValue : <code>{run.session_id}</code>,
        ])}
        sortKeys={rows.map(({ run, label, values }) => [
          run.number,
          ...parameters.map((name) => run.parameters[name] ?? null),
          ...(labelled ? [label] : []),
          ...figures.map((name) => values[name] ?? null),
          run.duration_s,
          run.outcome,
          run.session_id,
        ])}
      />
    );
  },
};

const mapTitle = ({ figure, fixed }: SweepMap): string =>
  [figureName(figure), fixed].filter(Boolean).join(' · ');

const mapsSection: Section = {
  id: 'maps',
  title: 'Maps',
  applies: ({ data }) => sweepMaps(data).length > 0,
  render: ({ data }) => (
    <div class="two">
      {sweepMaps(data).map((map, index) => (
        <div>
          <h3>{mapTitle(map)}</h3>
          <SweepChart
            name="sweep_map"
            result={data}
            part={String(index)}
            label={`${mapTitle(map)} by ${map.y.name} and ${map.x.name}`}
          >
            <DataTable
              caption={`${figureName(map.figure)}; rows: ${map.y.name}, columns: ${map.x.name}`}
              columns={[{ head: map.y.name, numeric: true }, ...map.x.values.map(numeric)]}
              rows={map.y.values.map((value, y) => [
                value,
                ...map.x.values.map((_, x) => {
                  const cell = map.cells.find((one) => one.x === x && one.y === y);
                  if (!cell) return noValue;
                  return cell.value === null
                    ? sweepOutcomeWords[cell.run.outcome]
                    : figureText(map.figure, cell.value);
                }),
              ])}
            />
          </SweepChart>
        </div>
      ))}
    </div>
  ),
};

const failuresSection: Section = {
  id: 'failures',
  title: 'Failures',
  applies: ({ data }) => data.runs.some(({ failure }) => failure !== null),
  render: ({ data }) => (
    <DataTable
      caption="What failed, why, and what to do"
      columns={[
        numeric('run'),
        { head: 'configuration', wraps: true },
        { head: 'what', wraps: true },
        { head: 'why', wraps: true },
        { head: 'what to do', wraps: true },
        { head: 'log' },
      ]}
      rows={data.runs
        .filter(
          (run): run is SweepRun & { failure: NonNullable<SweepRun['failure']> } => run.failure !== null,
        )
        .map(({ number, label, failure, log }) => [
          formatCount(number),
          label,
          `${failure.what} (${failure.code})`,
          failure.why,
          failure.fix,
          log === null ? noValue : <code>{log}</code>,
        ])}
    />
  ),
};

const doubtsSection: Section = {
  id: 'doubts',
  title: 'Before trusting these figures',
  applies: ({ data, issues }) => issues.length > 0 || data.runs.some((run) => run.issues.length > 0),
  render: ({ data, issues: ofPlan }) => (
    <DataTable
      caption="What the plan and the runs said of themselves"
      columns={[numeric('run'), { head: 'what', wraps: true }, { head: 'code' }]}
      rows={[
        ...ofPlan.map(({ text, code }) => ['all', text, <code>{code}</code>]),
        ...data.runs.flatMap(({ number, issues }) =>
          issues.map(({ text, code }) => [formatCount(number), text, <code>{code}</code>]),
        ),
      ]}
    />
  ),
};

const planSection: Section = {
  id: 'plan',
  title: 'Plan',
  render: ({ data }) => (
    <>
      <p>
        Each run is a process of its own
        {data.protocol.timeout_s !== null && `, ended after ${secondsText(data.protocol.timeout_s)}`}; faults
        of the machine are tried again {timesWords(data.protocol.retries)}. Before each run the memory of the
        GPUs must be free again and {formatBytes(data.protocol.min_free_bytes)} of disk.
      </p>
      <DataTable
        caption="Expected before, and measured"
        columns={[
          numeric('run'),
          { head: 'configuration' },
          numeric('expected'),
          numeric('took'),
          numeric('needs'),
          numeric('of'),
          { head: 'fit' },
        ]}
        rows={data.runs.map(({ number, label, expected, duration_s: took }) => [
          formatCount(number),
          label,
          secondsText(expected.seconds),
          secondsText(took),
          expected.memory_bytes === null ? noValue : formatBytes(expected.memory_bytes),
          expected.capacity_bytes === null ? noValue : formatBytes(expected.capacity_bytes),
          expected.fits === null ? 'not known' : expected.fits ? 'fits' : 'will not fit',
        ])}
      />
      <Behind title="Commands">
        <ul class="notes">
          {data.runs.map((run) => (
            <li>
              <code>inferscope {run.arguments.join(' ')}</code>
            </li>
          ))}
        </ul>
      </Behind>
    </>
  ),
};

const sections: Section[] = [runsSection, mapsSection, failuresSection, doubtsSection, planSection];

/**
 * The HTML report of a sweep: one page without any remote asset.
 * @param clientScript text of dist/report-client.js, which draws the charts
 */
export function sweepReport(
  document: Document<SweepResult>,
  { clientScript }: { clientScript: string },
): string {
  const { name, stamp, started_at, runs } = document.data;
  return documentPage({
    title: name ?? `sweep of ${formatCount(runs.length)} configurations`,
    document,
    session: { id: stamp, started_at },
    summary: <Summary document={document} />,
    sections,
    clientScript,
  });
}
