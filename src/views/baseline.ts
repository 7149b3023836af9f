import type { Document } from '../model/document.js';
import type { Baseline, BaselineCheck, BaselineVerdict } from '../model/documents/baseline.js';
import { comparedLabel } from '../vocabulary/compared-metrics.js';
import { formatShareSetting } from '../vocabulary/format.js';
import { basisLabels } from '../vocabulary/verdicts.js';
import type { Text, View } from './block.js';
import {
  changeNote,
  differenceTable,
  isUniform,
  metricTable,
  oneSidedNote,
  unclaimedNote,
  withinProcessNote,
} from './metric-changes.js';

const namesOf = (sessions: readonly { id: string; name: string | null }[]): string =>
  sessions.map(({ id, name }) => name ?? id).join(', ');

/** What `baseline set` saved, and how many of its metrics can be tested. @param path of the file */
export function baselineView(document: Document<Baseline>, path: string): View {
  const { name, sessions, metrics, set_at } = document.data;
  const testable = metrics.filter(
    ({ basis, interval }) => basis === 'launches' || interval?.over_launches === true,
  ).length;
  return {
    command: 'baseline set',
    title: `${name} from ${namesOf(sessions)}`,
    document,
    session: { id: null, started_at: set_at },
    lead: [
      ...(document.issues.length > 0 ? [{ type: 'issues' as const, issues: document.issues }] : []),
      {
        type: 'table',
        title: 'Metrics of the baseline',
        columns: [
          { id: 'metric', head: 'metric', wraps: true, lines: true },
          { id: 'value', head: 'mean', numeric: true },
          { id: 'n', head: 'n', numeric: true },
          { id: 'basis', head: 'spread over' },
        ],
        rows: metrics.map(({ point, name: metric, value, unit, basis, values, interval }) => ({
          cells: [
            comparedLabel({ point, name: metric }),
            { n: value, unit },
            { count: interval?.n ?? Math.max(1, values.length) },
            basisLabels[interval?.over_launches ? 'launches' : basis],
          ],
        })),
      },
      {
        type: 'notes',
        items: [
          ...(testable < metrics.length
            ? [
                [
                  ...(testable === 0
                    ? ['No metric has']
                    : [
                        { count: metrics.length - testable },
                        ' of ',
                        { count: metrics.length },
                        ' metrics have no',
                      ]),
                  `${testable === 0 ? ' a' : ''} spread between launches, so ${testable === 0 ? '' : 'their '}changes cannot be tested. Set the baseline from several runs: inferscope baseline set RUN1 RUN2 RUN3`,
                ] satisfies Text,
              ]
            : []),
          { code: path },
        ],
      },
    ],
    sections: [],
  };
}

const verdictsWithText: ReadonlySet<BaselineVerdict> = new Set(['regression', 'inconclusive', 'improvement']);

/** `baseline check`: the finding first, then every metric. */
export function baselineCheckView(document: Document<BaselineCheck>): View {
  const { data } = document;
  const { baseline, comparisons, sessions } = data;
  const metrics = comparisons.map(({ baseline: base, current: now, ...metric }) => ({
    ...metric,
    name: comparedLabel(metric),
    base,
    now,
  }));
  return {
    command: 'baseline check',
    title: `${baseline.name} (${baseline.set_at.slice(0, 10)}) → ${namesOf(sessions)}`,
    document,
    session: { id: null, started_at: sessions.at(-1)?.started_at ?? '' },
    lead: [
      {
        type: 'text',
        text: { text: data.headline, tone: data.result === 'regression' ? 'fault' : 'strong' },
      },
      metricTable(metrics, {
        title: 'Metrics compared with the baseline',
        uniform: isUniform(comparisons),
        base: 'baseline',
        now: 'now',
      }),
      {
        type: 'notes',
        items: comparisons
          .filter(({ verdict }) => verdictsWithText.has(verdict))
          .map((comparison) => `${comparedLabel(comparison)}: ${comparison.text}`),
      },
    ],
    sections: [
      { id: 'notes', title: 'Method', blocks: [{ type: 'notes', items: notes(data) }] },
      {
        id: 'differences',
        title: 'Other differences',
        blocks: differenceTable(data.differences, 'baseline', 'now'),
      },
    ],
  };
}

function notes({ comparisons, tolerance, within_process: isWithin }: BaselineCheck): Text[] {
  const tested = comparisons.filter(({ p_adjusted: p }) => p !== null).length;
  return [
    ...(tested === 0
      ? []
      : [
          [
            "A change is significant by Welch's test on logarithms with Holm's correction for ",
            { count: tested, unit: 'metrics' },
            '; worse by up to ',
            formatShareSetting(tolerance),
            ' is within tolerance.',
            isUniform(comparisons) ? ` Values per side: ${comparisons[0]!.n.join(' and ')}.` : '',
          ] satisfies Text,
        ]),
    ...oneSidedNote(
      comparisons.map(({ baseline: base, ...rest }) => ({ ...rest, base, name: comparedLabel(rest) })),
      { base: 'the baseline', now: 'the new run' },
    ),
    ...changeNote(comparisons.map(({ baseline: base, current: now, ...rest }) => ({ ...rest, base, now }))),
    ...(comparisons.some(({ verdict }) => verdict === 'inconclusive')
      ? ['More launches would narrow the intervals.']
      : []),
    ...unclaimedNote(comparisons, 'Set and check with several sessions, or profile with more --launches.'),
    ...withinProcessNote(isWithin),
  ];
}
