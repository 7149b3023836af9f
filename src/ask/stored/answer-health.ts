import { pointLabel } from '../../vocabulary/bench.js';
import type { BenchFlag } from '../../model/documents/bench.js';
import { hasSubject } from '../../model/subjects.js';
import { findingText } from './finding-parts.js';
import {
  notKnown,
  capture,
  partFrom,
  type StoredFacts,
  type StoredPart,
  known,
  type TopicAnswer,
} from './stored-facts.js';
import { asSentence } from './words.js';
import { issuesAt } from '../../vocabulary/sentence-template.js';
import { plural } from '../../vocabulary/format.js';
import { severityLabels } from '../../vocabulary/severities.js';

/** Rules about the run itself, not about the program. */
const checks = new Set([
  'throttling',
  'another_process',
  'cpu_by_accident',
  'few_repeats',
  'benchmark_flags',
]);

/** "Are there health flags?": flags of a benchmark's points, and the rules that judge the run. */
export async function healthOf(facts: StoredFacts): Promise<TopicAnswer> {
  const flags = await benchFlags(facts);
  const { rules, findings } = facts.explained;
  const checkRules = rules.filter(({ rule }) => checks.has(rule));
  const healthFindings = findings.filter(({ rule }) => checks.has(rule) && rule !== 'benchmark_flags');
  const checkedRules = checkRules.filter(({ outcome }) => outcome === 'fired' || outcome === 'not_fired');
  const warnings = flags.filter(({ severity }) => severity === 'warning');
  const issues = issuesAt(
    facts.session.issues
      .filter(({ severity }) => severity !== 'info')
      .map((issue) => ({ issue, scope: null })),
  );
  const count = warnings.length + healthFindings.length + issues.length;
  if (checkedRules.length === 0 && flags.length === 0 && count === 0)
    return notKnown('The state of the run was not recorded.', capture.monitor);
  const direct =
    count === 0
      ? `No warnings: ${checkedRules.length} of ${checkRules.length} checks had data and found nothing${flags.length > 0 ? `; ${plural(flags.length, 'remark')}` : ''}.`
      : `${plural(count, 'warning')}.`;
  const uncheckedRules = checkRules.filter((rule) => !checkedRules.includes(rule));
  return known(partFrom('findings', direct, count), [
    ...lines(warnings),
    ...healthFindings.map(findingText),
    ...issues.map(({ text }) => partFrom('manifest', `- ${text}`)),
    ...lines(flags.filter(({ severity }) => severity !== 'warning')),
    ...(uncheckedRules.length > 0
      ? [
          partFrom(
            'findings',
            `Not checked:\n${uncheckedRules.map(({ title, why }) => `- ${title}: ${asSentence(why)}`).join('\n')}`,
            0,
          ),
        ]
      : []),
  ]);
}

interface PlacedFlag extends BenchFlag {
  where: string | null;
}

async function benchFlags(facts: StoredFacts): Promise<PlacedFlag[]> {
  if (!hasSubject(facts.session.manifest, 'bench')) return [];
  const { analyzeBench } = await import('../../facts/bench/bench.js');
  const { variants } = (await analyzeBench(facts.session)).data;
  return variants.flatMap(({ flags, points }) => [
    ...flags.map((flag) => ({ where: null, ...flag })),
    ...points.flatMap(({ point, flags: pointFlags }) =>
      pointFlags.map((flag) => ({ where: point, ...flag })),
    ),
  ]);
}

/** One part per severity with a line per flag: the number of parts is limited. */
function lines(flags: readonly PlacedFlag[]): StoredPart[] {
  if (flags.length === 0) return [];
  const text = flags.map(
    ({ where, code, severity, text: issueText }) =>
      `- ${severityLabels[severity]}: ${where === null ? '' : `${pointLabel(where)}: `}${code.replaceAll('_', ' ')}: ${issueText}`,
  );
  return [partFrom('bench flags', text.join('\n'), flags.length)];
}
