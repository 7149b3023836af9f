import { belowLauncher, withProgram } from '../../advice/below-launcher.js';
import { dirname } from 'node:path';
import { cachedExplanation } from '../../advice/explain/explain.js';
import type { Finding } from '../../model/documents/explain.js';
import type { AnalyzeResult, AnswerQuery } from '../../model/documents/analyze.js';
import type { Session } from '../../session/open.js';
import { parseQuestion } from './parsed-question.js';
import type { QuestionWorkload } from './requested-changes.js';
import { changeOf, findingText, matchedFindings, notFound, silentRule } from './finding-parts.js';
import {
  notKnown,
  partFrom,
  type StoredFacts,
  type StoredPart,
  known,
  type TopicAnswer,
} from './stored-facts.js';
import { exampleQuestions, topicsOf } from './topics.js';
import { withoutEnd } from '../../vocabulary/sentence.js';

/** Maximum parts of an answer; `explain` and `sql` have the rest. */
const maxParts = 8;

/**
 * Answers without a model, from analyses, predictions and findings: matches the question to a topic and answers in one or two sentences
 * with the number, followed by the figures behind it. Each part names its query or analysis. If the session lacks the data, the answer
 * names the capture that records it. Without a question: the three key sentences and the findings.
 */
export async function storedAnswer(session: Session, question: string | null): Promise<AnalyzeResult> {
  const { answer, close } = await answerer(session);
  try {
    return await answer(question);
  } finally {
    await close();
  }
}

/** Answers several questions about one session; shared facts are computed once. Closed by the caller. */
export async function answerer(session: Session): Promise<{
  answer(question: string | null): Promise<AnalyzeResult>;
  close(): Promise<void>;
}> {
  const explained = (await cachedExplanation(session)).data;
  const database = await session.connect();
  const captures = once<Awaited<ReturnType<StoredFacts['captures']>>>(async () => {
    const { analyzeCaptures } = await import('../../facts/captures.js');
    return analyzeCaptures(session);
  });
  return {
    async answer(question) {
      const parsed = parseQuestion(question ?? '');
      const facts: StoredFacts = {
        session,
        home: homeOf(session),
        database,
        explained,
        question: parsed,
        captures,
      };
      if (question === null) return resultDocument(session, null, openingParts(facts), null);
      const { direct, evidence, notKnown: missing } = await answerOf(facts);
      const parts = withoutRepeats([...(direct ? [direct] : []), ...evidence]).slice(0, maxParts);
      return resultDocument(session, question, parts, missing);
    },
    close: () => database.close(),
  };
}

/** The home of the session if it is in sessions/<id>; otherwise the folders next to its own are the sessions. */
function homeOf({ folder }: Session): StoredFacts['home'] {
  const sessions = dirname(folder);
  return { root: dirname(sessions), sessions, cache: dirname(sessions) };
}

function once<T>(work: () => Promise<T>): () => Promise<T> {
  let known: Promise<T> | null = null;
  return () => (known ??= work());
}

function openingParts({ explained }: StoredFacts): StoredPart[] {
  const sentences = [...explained.preface, ...explained.sentences].map((text) =>
    partFrom('explain', text, null),
  );
  // The last sentence is about the first change: it is not repeated.
  const inSentences = explained.sentences.join(' ');
  const isSaid = ({ title }: Finding) => inSentences.includes(withoutEnd(title));
  const inOrder = explained.findings
    .filter((finding) => !isSaid(finding))
    .toSorted((a, b) => Number(a.hidden_by !== null) - Number(b.hidden_by !== null));
  const findings = inOrder.map(({ title, change, evidence, hidden_by: hiddenBy }) => {
    const first = evidence.find(({ sql }) => sql !== null);
    const hiddenNote =
      hiddenBy === null ? '' : ' (included in another finding, or visible only after its change)';
    return {
      text: `- ${withoutEnd(title)}${hiddenNote}. ${change.text}`,
      sql: first?.sql ?? null,
      from: 'findings',
      rows: first?.row_count ?? null,
    };
  });
  return [...sentences, ...findings];
}

/** Answers by the first topic that the session has data for; else by words that findings and rules share with the question. */
async function answerOf(facts: StoredFacts): Promise<TopicAnswer> {
  const workload = workloadOf(facts);
  for (const topic of topicsOf(facts.question, workload)) {
    const answer = await topic.answer(facts, workload);
    if (answer !== null) return answer;
  }
  const [first, ...rest] = matchedFindings(facts);
  if (first) return known(findingText(first), [changeOf(first), ...rest.map(findingText)]);
  const rule = silentRule(facts);
  if (!rule) return notKnown('', null);
  return rule.outcome === 'not_fired'
    ? known(partFrom('findings', notFound(rule), 0))
    : notKnown(`${rule.title}: not known. ${withoutEnd(rule.why)}.`, null);
}

function workloadOf({ session: { manifest }, question }: StoredFacts): QuestionWorkload {
  const { workload } = manifest;
  const inputLen = workload?.input_len ?? null;
  return {
    batchSize: workload?.batch_size ?? null,
    contextLen: inputLen === null ? null : inputLen + (workload?.output_len ?? 0),
    gpus: question.gpus,
  };
}

function withoutRepeats(parts: readonly StoredPart[]): StoredPart[] {
  return parts.filter(({ text }, i) => parts.findIndex((part) => part.text === text) === i);
}

function resultDocument(
  session: Session,
  question: string | null,
  parts: readonly StoredPart[],
  missing: TopicAnswer['notKnown'],
): AnalyzeResult {
  const queries: AnswerQuery[] = [];
  const texts = parts.map(({ text, sql, from, rows, command }) => {
    const tool = sql === null ? from : 'sql';
    const input = sql ?? command ?? commandOf(from, session);
    const sameQuery = queries.find((query) => query.tool === tool && query.input === input);
    const id = sameQuery?.id ?? `q${queries.length + 1}`;
    if (!sameQuery) queries.push({ id, tool, input, rows, error: null });
    const [first = '', ...rest] = text.split('\n');
    return [`${first.replace(/^\p{Ll}/u, (letter) => letter.toUpperCase())} [${id}]`, ...rest].join('\n');
  });
  const capture = missing?.capture
    ? belowLauncher(withProgram(missing.capture, session.manifest), session.manifest)
    : null;
  const unanswered =
    missing === null && parts.length > 0 ? [] : unknownLines(question ?? '', missing, capture);
  return {
    session: { id: session.id, name: session.user.name, title: session.manifest.title },
    question,
    answered_by: missing === null && parts.length > 0 ? 'stored' : 'none',
    model: null,
    answer: [...unanswered, ...texts].join('\n'),
    claims: [],
    unverified: 0,
    queries,
    next_capture: capture,
    usage: null,
  };
}

/** The command that shows the same facts; null if there is no single one. */
function commandOf(from: string, { id, user }: Session): string | null {
  const name = user.name ?? id;
  if (['findings', 'waterfall', 'explain'].includes(from)) return `inferscope explain ${name}`;
  if (from === 'utilization') return `inferscope session utilization ${name}`;
  if (from === 'manifest') return `inferscope session show ${name}`;
  if (from === 'estimate') return 'inferscope estimate --model <model> --gpu <gpu>';
  return `inferscope report --session ${name}`;
}

function unknownLines(question: string, missing: TopicAnswer['notKnown'], capture: string | null): string[] {
  if (missing !== null && capture !== null) return [missing.why, `Next: ${capture}`];
  return [
    `This cannot be answered without a model: no stored answer matches “${question}”.`,
    ...(missing?.why ? [missing.why] : []),
    'Questions that need no model, for example:',
    ...exampleQuestions.map((example) => `- ${example}`),
    'Or inferscope explain for all findings, inferscope sql for the tables; to ask a model set INFERSCOPE_AI_MODEL and its key (docs/guides/ask-questions.md).',
  ];
}
