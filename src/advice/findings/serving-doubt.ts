import { doubt } from './doubt.js';
import { servingIssueQuery } from './queries/serving-queries.js';
import type { Evidence } from '../../model/documents/explain.js';
import type { FindingContext, FoundDraft, RuleOutcome } from './rule.js';
import { servingOf } from './session-analyses.js';
import { capitalize, uncapitalize, withoutEnd } from '../../vocabulary/sentence.js';

type DoubtTexts = Pick<FoundDraft, 'cause' | 'change' | 'check'> & { name: string };

/**
 * Turns an issue of the load-test analysis (`code` of src/facts/serving/answers.ts) into one finding for all its loads.
 */
export async function servingDoubt(
  context: FindingContext,
  codes: readonly string[],
  { name, ...about }: DoubtTexts,
): Promise<RuleOutcome> {
  const serving = await servingOf(context);
  if (!serving) return { outcome: 'not_applicable', why: 'The session has no load test.' };
  const codeIssues = serving.issues.filter(({ code }) => codes.includes(code));
  const [first] = codeIssues;
  if (!first)
    return { outcome: 'not_fired', why: `None of ${serving.data.points.length} loads has this issue.` };
  const evidence: Evidence[] = [];
  for (const query of new Set(codeIssues.map(({ code }) => servingIssueQuery(code)))) {
    // The title states the first one.
    const others = codeIssues.filter((issue) => issue !== first && servingIssueQuery(issue.code) === query);
    const texts = others.map(({ text }) => text);
    const shows = texts.length === 0 ? query.shows : `${texts.join(' ')} ${capitalize(query.shows)}`;
    evidence.push((await context.evidence(query.sql, () => shows)).evidence);
  }
  return {
    outcome: 'fired',
    findings: [
      doubt({
        title: `${name}: ${withoutEnd(uncapitalize(first.text))}`,
        evidence,
        ...about,
      }),
    ],
  };
}
