import { headlineTime } from '../../../model/headline-time.js';
import { halfWidth } from '../../../facts/difference/half-width.js';
import type { Evidence, StageWaterfall } from '../../../model/documents/explain.js';
import { hasSubject } from '../../../model/subjects.js';
import { doubt } from '../doubt.js';
import { benchFlagSql } from '../queries/bench-queries.js';
import { stepTimesSql, windowTimesSql } from '../queries/stage-queries.js';
import type { FindingContext, FoundDraft, Rule } from '../rule.js';
import { benchOf } from '../session-analyses.js';
import { instancesOf, ms } from '../words.js';
import { formatPercent, plural } from '../../../vocabulary/format.js';
import { stageLabels } from '../../../vocabulary/stages.js';
import { uncapitalize, withoutEnd } from '../../../vocabulary/sentence.js';
import { pointLabel } from '../../../vocabulary/bench.js';

/** Half width of the 95 % interval as a share of the mean: smaller changes cannot be distinguished from noise. */
const maxHalfWidth = 0.1;
/** With fewer steps a spread is not meaningful. */
const minInstances = 3;

/** Times with too few repeats, or too much variation to compare with another run. */
export const fewRepeats: Rule = {
  id: 'few_repeats',
  title: 'Too few repeats, or repeats that differ',
  docs: {
    finds: 'Times come from too few repeats, or vary too much to compare with another run.',
    needs: 'stages with several instances, or a benchmark',
    gain: 'None: it makes the numbers unreliable.',
    change: 'Repeat more often, in several processes, on an otherwise idle machine.',
    withheld: 'at least three instances, with a 95 % interval of their mean of at most ± 10 %',
  },
  references: [
    {
      title: 'Georges, Buytaert, Eeckhout: Statistically rigorous Java performance evaluation (OOPSLA 2007)',
      url: 'https://doi.org/10.1145/1297027.1297033',
    },
  ],
  async find(context) {
    const bench = await benchOf(context);
    if (bench) {
      const flags = bench.data.variants.flatMap(({ flags: variantFlags, points }) => [
        ...variantFlags.map((flag) => ({ ...flag, point: null as string | null })),
        ...points.flatMap(({ flags, point }) => flags.map((flag) => ({ ...flag, point }))),
      ]);
      const varying = flags.filter(({ code }) => code === 'high_variance' || code === 'warmup_unstable');
      const single = bench.issues.filter(({ code }) => code === 'one_launch');
      if (varying.length === 0 && single.length === 0)
        return { outcome: 'not_fired', why: 'Repeats and launches of the benchmark agree within 5 %.' };
      const [worst] = varying;
      const title = worst
        ? `High variance${worst.point === null ? '' : ` at ${pointLabel(worst.point)}`}: ${worst.text}`
        : `Too few launches: ${uncapitalize(withoutEnd(single[0]!.text))}`;
      const points = varying.flatMap(({ point }) => point ?? []);
      const { evidence } = await context.evidence(
        benchFlagSql(worst?.code ?? 'one_launch', worst && points.length > 0 ? points : null),
        () =>
          [
            ...varying.map(({ point, text }) => (point === null ? text : `${pointLabel(point)}: ${text}`)),
            ...single.map(() => 'one launch'),
          ].join('; '),
      );
      return { outcome: 'fired', findings: [finding(title, evidence)] };
    }
    if (context.waterfalls.length === 0)
      return { outcome: 'not_applicable', why: 'The session has no stages with repeated times.' };
    const doubtful = context.waterfalls
      .filter(repeatsInRun)
      .flatMap((waterfall) => doubtOf(waterfall, context));
    if (doubtful.length > 0) {
      const { evidence } = await context.evidence<Times>(timesSql(context, doubtful), (rows) =>
        rows.map((row) => spreadWords(row)).join('; '),
      );
      return { outcome: 'fired', findings: [finding(doubtful[0]!.title, evidence)] };
    }
    return {
      outcome: 'not_fired',
      why: 'No stage has a mean with a 95 % interval above ± 10 %.',
    };
  },
};

/** Kinds that repeat within a run; loading and warm-up happen once. */
const repeatsInRun = ({ kind }: StageWaterfall) =>
  kind === 'prefill' || kind === 'decode' || kind === 'mixed';

function doubtOf(
  waterfall: StageWaterfall,
  { manifest }: FindingContext,
): { waterfall: StageWaterfall; title: string }[] {
  const { kind, instances } = waterfall;
  // Comparisons use the time without a profiler if there is one.
  const measured = headlineTime(waterfall);
  const n = (measured.value === null ? undefined : measured.n) ?? instances;
  // The passes of the embedded engine are short by design.
  if (instances < minInstances && hasSubject(manifest, 'profile')) return [];
  if (n < minInstances)
    return [
      {
        waterfall,
        title: `Too few repeats: ${instancesOf(n, kind)} ${n === 1 ? 'was' : 'were'} measured`,
      },
    ];
  const share = halfWidth(measured);
  if (share === null || share <= maxHalfWidth) return [];
  const over = measured.value === null ? undefined : measured.ci95_over;
  const mean = over
    ? `the mean ${stageLabels[kind] ?? kind} over ${plural(over.n, over.unit, over.unit)}`
    : `the mean of ${instancesOf(n, kind)}`;
  const text = `High variance: the 95 % interval of ${mean} is ± ${formatPercent(share)}`;
  return [{ waterfall, title: text }];
}

interface Times extends Record<string, string | number> {
  kind: string;
  instances: number;
  median_ms: number;
  min_ms: number;
  max_ms: number;
}

const spreadWords = ({ kind, instances, median_ms: median, min_ms: min, max_ms: max }: Times): string =>
  instances === 1
    ? `${instancesOf(1, kind)} of ${ms(median)}`
    : `${instancesOf(instances, kind)} of ${ms(min)} to ${ms(max)}, median ${ms(median)}`;

/** SQL of the times behind the means, from the clean execution if it is the one compared. */
function timesSql({ scope }: FindingContext, doubtful: readonly { waterfall: StageWaterfall }[]): string {
  const kinds = doubtful.map(({ waterfall }) => waterfall.kind);
  const isClean = ({ clean_ms: clean }: StageWaterfall) => clean.value !== null;
  if (scope && !doubtful.some(({ waterfall }) => isClean(waterfall))) return windowTimesSql(kinds);
  const executions = doubtful.map(({ waterfall }) =>
    isClean(waterfall) ? (scope?.source.timing?.execution_id ?? 'clean') : waterfall.execution_id,
  );
  return stepTimesSql(kinds, [...new Set(executions)], scope?.source.focus.rank ?? null);
}

function finding(title: string, evidence: Evidence): FoundDraft {
  return doubt({
    title,
    cause:
      'The mean is too uncertain to detect smaller changes: another run of the same program may differ as much.',
    change: {
      kind: 'capture',
      text: 'Repeat more often, in several processes, on an otherwise idle machine; compare medians of interleaved pairs.',
      example: 'inferscope bench latency --launches 5 --runs 10',
    },
    evidence: [evidence],
    check: 'inferscope baseline check, which takes the spread into account',
  });
}
