import { hasSubject } from '../../model/subjects.js';
import { listSessions } from '../../session/list.js';
import { openSession } from '../../session/open.js';
import { wholeWords } from '../whole-words.js';
import { notKnown, orNull, partFrom, type StoredFacts, known, type TopicAnswer } from './stored-facts.js';

const dayMs = 86_400_000;

/** "What changed since yesterday?": `session compare` with the newest earlier session of the same program. */
export async function whatChanged(facts: StoredFacts): Promise<TopicAnswer> {
  const { session, question, home } = facts;
  const { manifest, id } = session;
  const before = latestStart(question.text, manifest.started_at);
  const earlier = listSessions(home).filter(
    (one) =>
      one.id !== id &&
      one.broken === null &&
      one.kind === manifest.kind &&
      one.started_at !== null &&
      // Captures of one program may have the same start: then the session that was saved first is the earlier one.
      (one.started_at < before || (one.started_at === before && one.id < id)),
  );
  const named = earlier.filter(({ name }) => name !== null && wholeWords([name]).test(question.text));
  const alike = named.length > 0 ? named : earlier.filter(({ title }) => isAlike(title, manifest.title));
  const last = alike.toSorted((a, b) => (a.started_at! < b.started_at! ? 1 : -1))[0];
  if (!last) {
    return notKnown(
      `There is no ${earlier.length > 0 ? 'comparable ' : ''}session before ${before.slice(0, 16).replace('T', ' ')} UTC to compare with.`,
      earlier.length > 0 ? 'inferscope session compare <before> <after>' : 'inferscope session list',
    );
  }
  const lastText = `${last.name ?? last.id} (${last.started_at!.slice(0, 16).replace('T', ' ')} UTC)`;
  const { compareSessions } = await import('../../compare/sessions/compare.js');
  const comparison = await orNull(async () => compareSessions([await openSession(last.id, home), session]));
  if (!comparison || comparison.data.headlines.length === 0) {
    const command = hasSubject(manifest, 'bench', 'load') ? 'bench compare' : 'session compare';
    return notKnown(
      `It cannot be compared with ${lastText} here.`,
      `inferscope ${command} ${last.name ?? last.id} ${session.user.name ?? id}`,
    );
  }
  const [first, ...rest] = comparison.data.headlines;
  return known(
    partFrom('compare', `Since ${lastText}: ${first!.text}`),
    rest.slice(0, 6).map(({ text }) => partFrom('compare', `- ${text}`)),
  );
}

/** "Yesterday" ends at the start of the session's day, UTC; without such a word everything before the session counts. */
function latestStart(text: string, startedAt: string): string {
  const start = Date.parse(startedAt);
  const midnight = Math.floor(start / dayMs) * dayMs;
  if (/\byesterday\b/i.test(text)) return new Date(midnight).toISOString();
  if (/\blast week\b|\ba week ago\b/i.test(text)) return new Date(midnight - 6 * dayMs).toISOString();
  const days = /\b(\d+) days? ago\b/i.exec(text)?.[1];
  return days === undefined ? startedAt : new Date(midnight - (Number(days) - 1) * dayMs).toISOString();
}

/** Whether two sessions ran the same program or model: their titles share most words. */
function isAlike(title: string | null, otherTitle: string): boolean {
  const words = (text: string) =>
    new Set(
      text
        .toLowerCase()
        .split(/[^\w.-]+/)
        .filter((word) => word.length > 1),
    );
  const [a, b] = [words(title ?? ''), words(otherTitle)];
  const shared = [...a].filter((word) => b.has(word)).length;
  return shared >= 0.5 * Math.min(a.size, b.size) && shared > 0;
}
