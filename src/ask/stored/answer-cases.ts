import { hasSubject } from '../../model/subjects.js';
import { caseLabel } from '../../vocabulary/kernel-cases.js';
import { formatMs, formatPercent, plural } from '../../vocabulary/format.js';
import { withoutEnd } from '../../vocabulary/sentence.js';
import { known, notKnown, partFrom, type StoredFacts, type TopicAnswer } from './stored-facts.js';

/**
 * Cases that a session of `inferscope kernels` measured; null for other sessions.
 * @param byRoof farthest from their roof first, instead of the longest
 */
export async function measuredCases({ session }: StoredFacts, byRoof: boolean): Promise<TopicAnswer | null> {
  if (!hasSubject(session.manifest, 'kernels') || hasSubject(session.manifest, 'timeline')) return null;
  const { analyzeKernels } = await import('../../facts/kernels/kernels.js');
  const { data } = await analyzeKernels(session);
  const measured = data.cases.flatMap((result) =>
    result.median_ns === null ? [] : [{ result, ms: result.median_ns / 1e6, share: result.roof_share.value }],
  );
  const withRoof = measured.filter(({ share }) => share !== null);
  if (byRoof && withRoof.length === 0) {
    const reason = data.cases.flatMap(({ roof_share: share }) =>
      share.value === null ? [share.reason.text] : [],
    )[0];
    return notKnown(
      `The roofs of the kernels are not known${reason === undefined ? '' : `: ${withoutEnd(reason)}`}.`,
      null,
    );
  }
  const ordered = byRoof
    ? withRoof.toSorted((a, b) => a.share! - b.share!)
    : measured.toSorted((a, b) => b.ms - a.ms);
  const words = ordered.map(({ result, ms, share }) => {
    const ofRoof = share === null ? '' : `, ${formatPercent(share)} of its roof`;
    const bound = result.bound === null ? '' : `, ${result.bound}-bound`;
    return `${caseLabel(result, true)}: ${formatMs(ms)}${ofRoof}${bound}`;
  });
  const [first, ...rest] = words;
  if (first === undefined) return null;
  const which = byRoof ? 'Farthest from its roof' : 'Longest';
  const command = `inferscope report --session ${session.user.name ?? session.id}`;
  const part = (text: string) => partFrom('kernels', text, ordered.length, command);
  return known(
    part(`${which} among ${plural(ordered.length, 'measured case')}: ${first}.`),
    rest.slice(0, 5).map((text) => part(`- ${text}`)),
  );
}
