import type { FC } from 'hono/jsx';
import type { Document } from '../../../model/document.js';
import type { ExplainResult } from '../../../model/documents/explain.js';
import type { BenchmarkMetric, BenchmarkPoint, BenchmarkResults } from '../../../model/documents/results.js';
import { formatCount, formatQuantity, noValue } from '../../format.js';
import { collapsed } from '../../notices.js';
import { plural } from '../../words.js';
import { documentPage, type PageSection } from '../document-page.js';
import { explainParts, Sentences } from '../explain/explain.js';
import { DataTable, Notices } from '../parts.js';

type Captures = BenchmarkResults['captures'];
type Statistics = BenchmarkMetric['file'];

/** As the tools call a value that is no statistic of several. */
const single = new Set(['value', 'mean']);

function cell(list: Statistics, statistic: string, unit: string): string {
  const found = list.find((one) =>
    statistic === 'mean' ? single.has(one.statistic) : one.statistic === statistic,
  );
  if (!found) return noValue;
  const counted = (unit === 'requests' || unit === 'tokens') && Number.isInteger(found.value);
  return counted ? formatCount(found.value) : formatQuantity(found.value, unit);
}

const order = ['mean', 'median', 'sd', 'sd_population', 'min', 'p50', 'p90', 'p95', 'p99', 'p99_step', 'max'];
const names: Record<string, string> = {
  sd_population: 'sd (n)',
  median_step: 'median †',
  mean: 'mean or value',
};

const statisticName = (name: string): string => names[name] ?? name.replace(/_step$/, ' †');

/** Statistics that any metric of the point has, in the order of reading. */
function statisticsOf({ metrics }: BenchmarkPoint): string[] {
  const all = metrics.flatMap(({ file, recomputed }) =>
    [...file, ...recomputed].map(({ statistic }) => (single.has(statistic) ? 'mean' : statistic)),
  );
  const place = (name: string): number => {
    const at = order.indexOf(name);
    return at === -1 ? order.length : at;
  };
  return [...new Set(all)].toSorted((a, b) => place(a) - place(b) || a.localeCompare(b));
}

const Point: FC<{ point: BenchmarkPoint }> = ({ point }) => {
  const statistics = statisticsOf(point);
  const rows = point.metrics.flatMap((metric) =>
    [
      { list: metric.file, by: 'the tool' },
      { list: metric.recomputed, by: 'recomputed from its requests' },
    ]
      .filter(({ list }) => list.length > 0)
      .map(({ list, by }) => [
        metric.name,
        by,
        metric.defined_as_ours ? 'as ours' : <span class="fault">not comparable</span>,
        ...statistics.map((statistic) => cell(list, statistic, metric.unit)),
        (() => {
          const ns = list.flatMap(({ n }) => (n === null ? [] : [n]));
          return ns.length > 0 ? formatCount(Math.max(...ns)) : noValue;
        })(),
      ]),
  );
  const requests = point.requests
    ? `: ${formatCount(point.requests.ok)} requests, ${formatCount(point.requests.failed)} failed`
    : '';
  return (
    <>
      <h3>{point.label}</h3>
      <DataTable
        caption={`Metrics${requests}`}
        class="whole"
        columns={[
          { head: 'metric' },
          { head: 'by' },
          { head: 'defined' },
          ...statistics.map((name) => ({ head: statisticName(name), numeric: true })),
          { head: 'n', numeric: true },
        ]}
        rows={rows}
      />
    </>
  );
};

/** Every definition once, those that are not ours first. */
const Definitions: FC<{ captures: Captures }> = ({ captures }) => {
  const seen = new Map<string, { tool: string; metric: BenchmarkMetric; sources: Set<string> }>();
  for (const { tool, points } of captures) {
    for (const metric of points.flatMap(({ metrics }) => metrics)) {
      const key = `${tool.name}\n${metric.name}\n${metric.definition}`;
      const one = seen.get(key) ?? { tool: tool.name, metric, sources: new Set() };
      for (const { source } of metric.file) one.sources.add(source.replace(/^file: /, ''));
      seen.set(key, one);
    }
  }
  const all = [...seen.values()].toSorted(
    (a, b) => Number(a.metric.defined_as_ours) - Number(b.metric.defined_as_ours),
  );
  return (
    <DataTable
      caption="What each name means, and whether it may be held against ours"
      columns={[
        { head: 'tool' },
        { head: 'metric' },
        { head: 'unit' },
        { head: 'defined' },
        { head: 'definition', wraps: true },
        { head: 'fields', wraps: true },
      ]}
      rows={all.map(({ tool, metric, sources }) => [
        tool,
        metric.name,
        metric.unit,
        metric.defined_as_ours ? 'as ours' : <span class="fault">not comparable</span>,
        metric.definition,
        [...sources].slice(0, 6).join(', '),
      ])}
    />
  );
};

const toolName = ({ tool }: Captures[number]): string => `${tool.name} ${tool.version ?? ''}`.trim();

/**
 * The page of imported results of other benchmark tools, by definition: what is defined otherwise than ours says so
 * wherever it stands.
 */
export function resultsReport(
  document: Document<BenchmarkResults>,
  { clientScript, explain }: { clientScript: string; explain?: Document<ExplainResult> | null },
): string {
  const { session, captures } = document.data;
  const metrics = captures.flatMap(({ points }) => points.flatMap((point) => point.metrics));
  const foreign = [
    ...new Set(metrics.filter(({ defined_as_ours }) => !defined_as_ours).map(({ name }) => name)),
  ];
  const recomputed = metrics.some((metric) => metric.recomputed.length > 0);
  const stepped = metrics.some(({ file }) => file.some(({ statistic }) => statistic.endsWith('_step')));
  const sections: PageSection<BenchmarkResults>[] = [
    ...captures.map((capture, index) => ({
      id: `capture-${index + 1}`,
      title: captures.length > 1 ? `${toolName(capture)}, ${capture.capture_id}` : toolName(capture),
      render: () => capture.points.map((point) => <Point point={point} />),
    })),
    { id: 'definitions', title: 'Definitions', render: () => <Definitions captures={captures} /> },
  ];
  const summary = (
    <header id="summary">
      <p class="kicker">
        inferscope import · {session.id} · {session.started_at.slice(0, 16).replace('T', ' ')} UTC
      </p>
      <h1>{session.title}</h1>
      <Sentences explain={explain} />
      <dl class="lead">
        <div>
          <dt>Holds</dt>
          <dd>
            {captures
              .map((capture) => `${plural(capture.points.length, 'load point')} of ${toolName(capture)}`)
              .join('; ')}
            .
          </dd>
        </div>
        <div>
          <dt>Comparable</dt>
          <dd>
            {foreign.length === 0
              ? 'Every metric is defined as ours.'
              : `Defined otherwise than ours, and not to be held against ours: ${foreign.join(', ')}.`}
          </dd>
        </div>
        {(recomputed || stepped) && (
          <div>
            <dt>Notes</dt>
            <dd>
              {recomputed &&
                'Where the file has its requests, our own definitions are recomputed from them. '}
              {stepped && '† marks a step of the distribution that was not interpolated.'}
            </dd>
          </div>
        )}
      </dl>
      <Notices issues={collapsed(document.issues)} />
    </header>
  );
  return documentPage({
    title: session.title,
    document,
    session,
    summary,
    lead: explainParts(explain),
    sections,
    clientScript,
  });
}
