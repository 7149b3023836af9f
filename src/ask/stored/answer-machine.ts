import { isGpuScope, scopeLabel } from '../../vocabulary/sampled-metrics.js';
import { heldMean, heldSamples } from '../../facts/held-samples.js';
import { deviceOf } from '../../facts/device.js';
import {
  notKnown,
  capture,
  hasTable,
  partFrom,
  type StoredFacts,
  type StoredPart,
  known,
  type TopicAnswer,
} from './stored-facts.js';
import { formatMs, formatQuantity, plural } from '../../vocabulary/format.js';

interface SampleRow extends Record<string, unknown> {
  scope: string;
  mean: number;
  most: number;
  samples: number;
  seconds: number;
  executions: number;
}

interface Metric {
  metric: string;
  unit: string;
  /** Starts its sentence; `scope` is a label. */
  what: (scope: string) => string;
  /** Scopes of the answer; without them all that have the metric. */
  scopes?: readonly string[];
}

const utilization: Metric = {
  metric: 'utilization_percent',
  unit: '%',
  what: (scope) => `${scope} is utilized`,
};

/** The first that a question names. */
const metrics: readonly (readonly [pattern: RegExp, ...Metric[]])[] = [
  [
    /\bcpus?\b|\bcores\b/i,
    { ...utilization, what: () => 'The CPU is utilized', scopes: ['host'] },
    {
      metric: 'cores_busy',
      unit: 'cores',
      what: (scope) => `${scope}:`,
      scopes: ['process', 'other_processes'],
    },
  ],
  [/\bpower\b|\bwatts?\b/i, { metric: 'power_w', unit: 'W', what: (scope) => `${scope} draws` }],
  [
    /\bclocks?\b|\bfrequenc\w*/i,
    { metric: 'sm_clock_mhz', unit: 'MHz', what: (scope) => `${scope} clocks at` },
  ],
  [/\btemperature\b|\bhot\b/i, { metric: 'temperature_c', unit: '°C', what: (scope) => `${scope} is at` }],
  [/\butili[sz]ation\b|\bbusy\b/i, utilization],
];

/** "How much power does it draw?": samples of the device during the run. */
export async function sampledMetric(facts: StoredFacts): Promise<TopicAnswer | null> {
  const found = metrics.find(([pattern]) => pattern.test(facts.question.text));
  if (!found) return null;
  const [, ...named] = found;
  const samples = await Promise.all(named.map(async (metric) => samplesOf(facts, metric)));
  const [first, ...rest] = samples.flat().map(({ part }) => part);
  if (!first) return notKnown(`That was not sampled in this session.`, capture.monitor);
  return known(
    first,
    rest.slice(0, 3).map((part) => ({ ...part, text: `- ${part.text}` })),
  );
}

/** Mean sampled utilization of the first GPU; null without samples. */
export async function sampledUtilization(facts: StoredFacts): Promise<StoredPart | null> {
  const lines = await samplesOf(facts, utilization);
  return lines.find(({ scope }) => isGpuScope(scope))?.part ?? null;
}

/** One line per scope, GPUs first, over the sampled time of each execution; empty if the metric was not sampled. */
async function samplesOf(facts: StoredFacts, found: Metric): Promise<{ scope: string; part: StoredPart }[]> {
  if (!hasTable(facts, 'telemetry')) return [];
  const among = found.scopes ? ` AND scope IN (${found.scopes.map((scope) => `'${scope}'`).join(', ')})` : '';
  const samplesSql = `SELECT execution_id, scope, metric, t_ns, value FROM telemetry WHERE metric = '${found.metric}' AND value IS NOT NULL${among}`;
  const sql = `SELECT scope, sum(mean * held_ns) / sum(held_ns) AS mean, max(most) AS most, sum(n)::DOUBLE AS samples, sum(span_ns) / 1e9 AS seconds, count(*)::DOUBLE AS executions
FROM (SELECT scope, ${heldMean} AS mean, greatest(1, sum(held_ns)) AS held_ns, max(value) AS most, count(*) AS n, max(t_ns) - min(t_ns) AS span_ns
      FROM (${heldSamples(samplesSql)}) GROUP BY scope, execution_id)
GROUP BY scope ORDER BY (scope LIKE 'gpu%') DESC, scope`;
  const rows = await facts.database.query<SampleRow>(sql);
  return rows.map(({ scope, mean, most, samples, seconds, executions }) => {
    const where = executions > 1 ? ` of ${plural(executions, 'execution')}` : '';
    const text = `${found.what(scopeLabel(scope))} ${formatQuantity(mean, found.unit)} on average over ${formatMs(1e3 * seconds)}, ${formatQuantity(most, found.unit)} at most (${plural(samples, 'sample')}${where} from start to end, loading and idle time included).`;
    return { scope, part: { text, sql, from: 'sql', rows: rows.length } };
  });
}

/** "What ran?": model, dtype, engine, sizes, device. */
export function whatRan({ session: { manifest } }: StoredFacts): TopicAnswer {
  const { workload } = manifest;
  const { name } = deviceOf(manifest);
  const sizes = workload
    ? [
        workload.batch_size === null ? null : `batch ${workload.batch_size}`,
        workload.input_len === null ? null : `${workload.input_len} prompt tokens`,
        workload.output_len === null ? null : `${workload.output_len} generated`,
      ].filter((part) => part !== null)
    : [];
  const model = workload?.model;
  const device = name ?? manifest.hardware['cpu_model'];
  const parts = [
    model ? `${model.name}, ${model.quantization ?? model.dtype}` : null,
    workload
      ? `${workload.engine.name}${workload.engine.version === null ? '' : ` ${workload.engine.version}`}`
      : null,
    sizes.length > 0 ? sizes.join(', ') : null,
    typeof device === 'string' ? `on ${device}` : null,
  ].filter((part) => part !== null);
  if (parts.length === 0)
    return notKnown('The session does not record what ran, only its title.', 'inferscope session show');
  return known(partFrom('manifest', `It ran ${parts.join('; ')}.`), [
    partFrom(
      'manifest',
      `Session: ${manifest.title}, ${manifest.started_at.slice(0, 16).replace('T', ' ')} UTC.`,
    ),
  ]);
}
