import type { Document, Issue } from '../model/document.js';
import type { ProfileResult } from '../model/documents/profile.js';
import type { Figure } from '../model/figure.js';
import { rangedText, withoutNumbers } from '../model/ranged-text.js';
import { formatCount, formatFigure, isAccountingFault, nbsp } from './format.js';

const severities: Issue['severity'][] = ['error', 'warning', 'info'];

/** Issues that say the same of several launches as one, with their number: five of a kind hide what is said once. */
export function collapsed(issues: Issue[]): Issue[] {
  const groups = new Map<string, Issue[]>();
  for (const issue of issues) {
    const key = [issue.severity, issue.code, withoutNumbers(issue.text)].join('\n');
    groups.set(key, [...(groups.get(key) ?? []), issue]);
  }
  return [...groups.values()].flatMap((group): Issue[] => {
    const [first] = group;
    if (!first || group.length === 1) return group;
    const count = group.reduce((sum, issue) => sum + (issue.count ?? 1), 0);
    return [{ ...first, text: rangedText(group.map(({ text }) => text)), count }];
  });
}

/** Codes of issues that may be why a part of a profile is absent. */
const causes = {
  operators: new Set(['trace_unreadable', 'clock_skew', 'ended_early', 'interrupted', 'workload_error']),
  memory: new Set(['process_unreadable', 'children_unreadable', 'ended_early', 'interrupted']),
  telemetry: new Set(['process_unreadable', 'late_samples', 'sampling_cost', 'ended_early', 'interrupted']),
};

/** Those of the issues that may be why a part is absent. */
export function causesOf(part: keyof typeof causes, issues: Issue[]): Issue[] {
  return collapsed(issues.filter(({ code }) => causes[part].has(code)));
}

/** Issues whose text states their count: "(× N)" would repeat it. */
const countedInText = new Set([
  'activities_before_launch',
  'activities_repeated',
  'activities_without_device',
  'attributed_by_process_range',
  'attributed_by_thread',
  'calls_clipped',
  'clocks_disagree',
  'copy_bytes_impossible',
  'correlation_shared',
  'graph_node_latency',
  'graphs_opaque',
  'impossible_times',
  'late_samples',
  'launch_latency',
  'names_missing',
  'no_kernels',
  'orphans',
  'outside_stages',
  'points_missing',
  'ranges_overlapping',
  'ranges_unclosed',
  'stages_missing',
  'trailing_bytes',
]);

/** "× 3" where something happened several times and the text does not say how often; '' otherwise. */
export function timesOf({ code, count = 1 }: Issue): string {
  return count < 2 || countedInText.has(code) ? '' : `×${nbsp}${formatCount(count)}`;
}

function statusIssue({ session }: ProfileResult, issues: Issue[]): Issue | null {
  if (session.status === 'complete') return null;
  const why = issues.find(({ code }) => code === 'interrupted')?.text ?? `The session was ${session.status}.`;
  return {
    code: `session_${session.status}`,
    severity: 'error',
    text: `${why} The figures cover only what had been recorded by then.`,
  };
}

function accountingFaults({ stages }: ProfileResult): Issue[] {
  return stages.flatMap((stage) => {
    const utilizations: [string, Figure][] = [
      ['MFU', stage.mfu],
      ['MBU', stage.mbu],
    ];
    return utilizations
      .filter(([, utilization]) => isAccountingFault(utilization))
      .map(([name, utilization]): Issue => ({
        code: 'accounting_fault',
        severity: 'error',
        text:
          `${name} of ${stage.kind} is ${formatFigure(utilization)}, which no hardware can reach: the work is counted ` +
          'too high or the roof was measured too low. Do not use this figure before that is cleared up.',
      }));
  });
}

/**
 * What the reader must know before trusting the figures: an unfinished session, every MFU or MBU over 100 %, and the
 * document's issues, those of a kind as one. Gravest first.
 */
export function notices({ data, issues }: Document<ProfileResult>): Issue[] {
  const status = statusIssue(data, issues);
  // An interruption is said once, with what it means.
  const others = status ? issues.filter(({ code }) => code !== 'interrupted') : issues;
  const found = [...(status ? [status] : []), ...accountingFaults(data), ...collapsed(others)];
  return found.toSorted((a, b) => severities.indexOf(a.severity) - severities.indexOf(b.severity));
}
