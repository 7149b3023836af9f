import type { Document } from '../model/document.js';
import type { BenchCompare, ComparedSide } from '../model/documents/bench-compare.js';
import { compareCharts } from './bench-compare-charts.js';
import type { Block, Text, View } from './block.js';
import {
  changeNote,
  differenceTable,
  isUniform,
  metricTable,
  oneSidedNote,
  unclaimedNote,
  withinProcessNote,
} from './metric-changes.js';
import { pointLabel } from '../vocabulary/bench.js';
import { comparedLabel, comparedMetricLabel } from '../vocabulary/compared-metrics.js';

/** Two benchmarks metric by metric: the finding first, then one table per point, so that names are not cut. */
export function benchCompareView(document: Document<BenchCompare>): View {
  const { data } = document;
  const uniform = isUniform(data.comparisons);
  const differences = differenceTable(data.differences);
  const charts = compareCharts(data.comparisons);
  const points = [...new Set(data.comparisons.map(({ point }) => point))];
  return {
    command: 'bench compare',
    title: `${sideName(data.base)} → ${sideName(data.now)}`,
    document,
    session: { id: null, started_at: data.now.sessions.at(-1)?.started_at ?? '' },
    lead: [
      { type: 'text', text: { text: data.headline, tone: data.result === 'failed' ? 'fault' : 'strong' } },
    ],
    sections: [
      ...(charts.length > 0
        ? [{ id: 'charts', title: 'Metrics, base and new', level: 3, blocks: charts } as const]
        : []),
      {
        id: 'metrics',
        title: 'Metrics',
        blocks: points.flatMap((point): Block[] => [
          ...(point === null ? [] : [{ type: 'heading', text: pointLabel(point) } as const]),
          metricTable(
            data.comparisons
              .filter((comparison) => comparison.point === point)
              .map((comparison) => ({ ...comparison, name: comparedMetricLabel(comparison.name) })),
            { title: point === null ? 'Metrics' : pointLabel(point), uniform },
          ),
        ]),
      },
      { id: 'notes', title: 'Method', blocks: [{ type: 'notes', items: notes(data) }] },
      ...(differences.length > 0
        ? [{ id: 'differences', title: 'Other differences', blocks: differences }]
        : []),
    ],
  };
}

function sideName({ selector, baseline, variant, sessions }: ComparedSide): string {
  if (baseline !== null) return `baseline ${baseline}`;
  const named = sessions.map(({ id, name }) => name ?? id).join(', ') || selector;
  return variant === null ? named : `${named}:${variant}`;
}

/** Only benchmarks of an engine have launches: load tests and captures do not. */
const moreValues =
  'Measure an engine with more --launches, anything else in several sessions and compare their baselines (inferscope baseline set)';

function notes({ comparisons, power, within_process: isWithin, gates }: BenchCompare): Text[] {
  const tested = comparisons.filter(({ method }) => method !== null);
  const isRankTest = tested.some(({ method }) => method === 'mann_whitney');
  const [first] = comparisons;
  const values = comparisons.some(({ basis }) => basis === 'repeats') ? 'values' : 'process launches';
  return [
    ...(tested.length > 0
      ? [
          [
            "Significant: p < 0.05 after Holm's correction for ",
            { count: tested.length, unit: 'metrics' },
            gates.length > 0 ? ' (metrics of --fail-on are corrected separately)' : '',
            isRankTest ? ', by the Mann-Whitney rank test; change and interval by Hodges-Lehmann.' : '.',
            isUniform(comparisons) ? ` The sides have ${first!.n.join(' and ')} ${values}.` : '',
          ] satisfies Text,
        ]
      : []),
    ...power,
    ...oneSidedNote(comparisons.map((comparison) => ({ ...comparison, name: comparedLabel(comparison) }))),
    ...changeNote(comparisons),
    ...unclaimedNote(
      comparisons,
      isWithin
        ? `${moreValues}.`
        : `${moreValues}, or use --within-process to compare repeats or requests of one process.`,
    ),
    ...withinProcessNote(isWithin),
  ];
}
