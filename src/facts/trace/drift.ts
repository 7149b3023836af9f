import type { Drift } from '../../model/documents/trace-drift.js';
import { figure, missing, type Figure } from '../../model/figure.js';
import { kindsSql, stepKinds } from '../../model/record.js';
import { percentile } from '../../model/statistics.js';
import { makeKnownSizes } from './known-sizes.js';
import type { TraceScope } from './scope.js';

/** With fewer steps a slope may be chance. */
const minSteps = 10;
/** Maximum steps for slopes over all pairs; a longer run is sampled at equal distances. */
const maxSteps = 1000;
const partsOfSpan = 10;
const normal975 = 1.959964;

interface Step {
  kind: Drift['kind'];
  /** Steps with an equal value do the same work. */
  work: string;
  comparedBy: Drift['matched_by'];
  start_ns: number;
  wall_ns: number;
}

/** A step's time divided by the median of steps with the same work. */
interface RelativeTime {
  start_ns: number;
  relative: number;
}

/**
 * Trend of step times over the run. The KV cache grows with every decode step of a request, so a step is compared with
 * steps at the same position of other requests. Without marked requests (a server), it is compared with steps of its
 * batch size.
 */
export async function readDrift(scope: TraceScope): Promise<Drift[]> {
  await scope.need('windows');
  await makeKnownSizes(scope);
  const steps = await scope.database.query<Step>(
    `WITH step AS (
       SELECT kind, start_ns, (end_ns - start_ns)::DOUBLE AS wall_ns, step_index, coalesce(batch_size, 0) AS batch,
         count(DISTINCT iteration) OVER (PARTITION BY kind) > 0 AND step_index IS NOT NULL AS placed, batch_size IS NOT NULL AS sized
       FROM windows LEFT JOIN known_sizes USING (stage_id) WHERE kind IN ${kindsSql([...stepKinds, 'training', 'other'])} AND end_ns > start_ns)
     SELECT kind, start_ns, wall_ns, CASE WHEN placed THEN 'position' WHEN sized THEN 'batch' ELSE 'kind' END AS "comparedBy",
       CASE WHEN placed THEN batch || ' ' || step_index ELSE batch::VARCHAR END AS work
     FROM step ORDER BY kind, start_ns`,
  );
  const kinds = [...new Set(steps.map(({ kind }) => kind))];
  return kinds.map((kind) =>
    driftOf(
      kind,
      steps.filter((step) => step.kind === kind),
    ),
  );
}

function driftOf(kind: Drift['kind'], steps: readonly Step[]): Drift {
  const groups = new Map<string, Step[]>();
  for (const step of steps) groups.set(step.work, [...(groups.get(step.work) ?? []), step]);
  const compared = [...groups.values()]
    .filter((group) => group.length > 1)
    .flatMap((group): RelativeTime[] => {
      const median = percentile(
        group.map(({ wall_ns }) => wall_ns).toSorted((a, b) => a - b),
        0.5,
      );
      return group.map(({ start_ns, wall_ns }) => ({ start_ns, relative: wall_ns / median }));
    })
    .toSorted((a, b) => a.start_ns - b.start_ns);
  const from_ns = compared[0]?.start_ns ?? 0;
  const span_ns = (compared.at(-1)?.start_ns ?? 0) - from_ns;
  return {
    kind,
    steps: compared.length,
    matched_by: steps[0]?.comparedBy ?? 'kind',
    span_ns,
    change:
      compared.length < minSteps || span_ns === 0
        ? tooFewSteps(compared.length)
        : changeOf(compared, span_ns),
    parts: span_ns === 0 ? [] : partsOf(compared, from_ns, span_ns),
  };
}

const tooFewSteps = (steps: number): Figure =>
  missing(
    'too_few_steps',
    `${steps} steps have another step with the same work in the run; a trend needs ${minSteps}`,
  );

/**
 * Theil-Sen: the median slope of all pairs, robust to outliers in up to a third of the steps. The interval uses
 * Kendall's variance. Slopes are of logarithms: no run ends more than 100 % faster than it started.
 */
function changeOf(steps: readonly RelativeTime[], spanNs: number): Figure {
  const stride = Math.ceil(steps.length / maxSteps);
  const sampled = steps.filter((_, index) => index % stride === 0);
  const slopes: number[] = [];
  for (const [i, a] of sampled.entries()) {
    for (const b of sampled.slice(i + 1)) {
      if (b.start_ns > a.start_ns)
        slopes.push((spanNs * Math.log(b.relative / a.relative)) / (b.start_ns - a.start_ns));
    }
  }
  slopes.sort((a, b) => a - b);
  const n = sampled.length;
  const halfWidth = (normal975 * Math.sqrt((n * (n - 1) * (2 * n + 5)) / 18)) / slopes.length / 2;
  const changeAt = (fraction: number): number => Math.expm1(percentile(slopes, fraction));
  return figure(
    changeAt(0.5),
    'ratio',
    'exp(Theil-Sen slope of log(time / median time of steps with the same work), over the run) − 1',
    {
      n: steps.length,
      ci95: [changeAt(Math.max(0, 0.5 - halfWidth)), changeAt(Math.min(1, 0.5 + halfWidth))],
    },
  );
}

function partsOf(steps: readonly RelativeTime[], fromNs: number, spanNs: number): Drift['parts'] {
  return Array.from({ length: partsOfSpan }, (_, index) => {
    const partSteps = steps.filter(
      ({ start_ns }) =>
        Math.min(partsOfSpan - 1, Math.floor((partsOfSpan * (start_ns - fromNs)) / spanNs)) === index,
    );
    const sorted = partSteps.map(({ relative }) => relative).toSorted((a, b) => a - b);
    return {
      from_ns: fromNs + (index * spanNs) / partsOfSpan,
      steps: partSteps.length,
      relative: sorted.length === 0 ? null : percentile(sorted, 0.5),
    };
  });
}
