import type { Issue } from '../../model/document.js';
import { rankRanges, type RankFiles } from '../../model/ranks.js';
import { formatNs, plural } from '../../vocabulary/format.js';
import type { RankPart } from './merge.js';

/** Issues of lost files and inexact clocks of a job, and the issues of its parts. */
export const rankIssues = (files: RankFiles, parts: readonly RankPart[]): Issue[] => [
  ...lossIssues(files),
  ...clockIssues(files, parts),
  ...windowIssues(files),
  ...partIssues(parts),
];

/** Files that could not be read, ranks without a file, files of another kind. */
function lossIssues({ files, missing }: RankFiles): Issue[] {
  const failed = files.filter(({ outcome }) => outcome === 'failed');
  const issues: Issue[] = failed.map(({ file, rank, reason }) => ({
    code: 'rank_unreadable',
    severity: 'error',
    text: `${rank === null ? '' : `Rank ${rank}: `}${file} could not be imported. ${reason ?? ''}`.trim(),
  }));
  const missingRanks = missing.filter((rank) => !failed.some((file) => file.rank === rank));
  if (missingRanks.length > 0) {
    const isOne = missingRanks.length === 1;
    const text = `No file of ${isOne ? 'rank' : 'ranks'} ${rankRanges(missingRanks)} was found; the time that others wait for ${isOne ? 'it' : 'them'} counts as exchange.`;
    issues.push({ code: 'rank_missing', severity: 'warning', text, count: missingRanks.length });
  }
  const skipped = files.filter(({ outcome }) => outcome === 'skipped');
  if (skipped.length > 0) {
    const text = `Files that are not timelines were left out: ${skipped
      .slice(0, 3)
      .map(({ file }) => file)
      .join(', ')}${skipped.length > 3 ? ', …' : ''}.`;
    issues.push({ code: 'rank_file_skipped', severity: 'info', text, count: skipped.length });
  }
  return issues;
}

/** Merges issues with the same code: the text of the first rank, and the number of other ranks. */
function partIssues(parts: readonly RankPart[]): Issue[] {
  const issueByCode = new Map<string, { issue: Issue; rank: number; ranks: Set<number> }>();
  for (const { session, rank } of parts)
    for (const issue of session.issues) {
      const first = issueByCode.get(issue.code);
      if (first) first.ranks.add(rank);
      else issueByCode.set(issue.code, { issue, rank, ranks: new Set([rank]) });
    }
  return [...issueByCode.values()].map(({ issue: { code, severity, text, count }, rank, ranks }) => ({
    code,
    severity,
    text: `Rank ${rank}: ${text}${ranks.size > 1 ? ` Also on ${plural(ranks.size - 1, 'other rank')}.` : ''}`,
    ...(count !== undefined && { count }),
  }));
}

/** Ranks that stay on the clocks of their hosts, if any rank recorded collectives, which compare ranks. */
function clockIssues({ clocks }: RankFiles, parts: readonly RankPart[]): Issue[] {
  if (parts.every(({ calls }) => calls.executions.length === 0)) return [];
  const references = clocks.filter(({ against }) => against === null);
  if (references.length === 0) return [];
  const names = references.map(({ rank }) => rank).join(', ');
  const text = `The clocks of ranks ${names} could not be aligned with the others: too few collectives overlap, or the traces do not record which ranks take part in a collective (nsys). Their times are those of their hosts.`;
  return [{ code: 'rank_clock_unaligned', severity: 'warning', text, count: references.length }];
}

/** Minimum common share of the shortest capture; below it the ranks recorded different times. */
const minCommon = 0.9;

/** Captures of aligned ranks that started or ended at different times, which happens if each rank starts its profiler by itself. */
function windowIssues({ clocks }: RankFiles): Issue[] {
  const windows = clocks.flatMap(({ rank, against, window_ns }) =>
    against === null || !window_ns ? [] : [{ rank, first: window_ns[0], last: window_ns[1] }],
  );
  if (windows.length < 2) return [];
  const latest = windows.reduce((a, b) => (b.first > a.first ? b : a));
  const earliest = windows.reduce((a, b) => (b.last < a.last ? b : a));
  const shortest = Math.min(...windows.map(({ first, last }) => last - first));
  const common = Math.max(0, earliest.last - latest.first);
  if (common >= minCommon * shortest) return [];
  const text = `The captures of the ranks have ${formatNs(common)} in common, the shortest lasts ${formatNs(shortest)}: rank ${latest.rank} starts last, rank ${earliest.rank} ends first. Outside this time not all ranks have data.`;
  return [{ code: 'rank_windows_apart', severity: 'warning', text }];
}
