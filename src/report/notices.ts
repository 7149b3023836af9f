import type { Issue } from '../model/document.js';
import { rangedText, withoutNumbers } from '../model/ranged-text.js';
import { formatCount, nbsp } from '../vocabulary/format.js';

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
