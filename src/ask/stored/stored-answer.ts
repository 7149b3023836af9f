import { rememberedExplanation } from '../../analyze/explain/explain.js';
import type { AnalyzeResult, AskedQuery } from '../../model/documents/analyze.js';
import type { Session } from '../../session/open.js';
import { byWords, questionKinds } from './question-kinds.js';
import { type StoredFacts, type StoredPart, tokensOf } from './stored-part.js';

const stageWords: Record<string, RegExp> = {
  prefill: /\b(prefill\w*|ttft|first token|prompt processing)\b/i,
  decode: /\b(decod\w*|tpot|itl|per token|each token|token generation)\b/i,
};

/**
 * Answers from analyses and findings, without a model: the question is matched to what it is about, and every part of the
 * answer names the query or analysis that gave it. Without a question: the three sentences and the findings.
 */
export async function storedAnswer(session: Session, question: string | null): Promise<AnalyzeResult> {
  const explained = (await rememberedExplanation(session)).data;
  const database = await session.connect();
  try {
    const text = question ?? '';
    const facts: StoredFacts = {
      session,
      database,
      explained,
      question: {
        text,
        tokens: tokensOf(text),
        stages: Object.keys(stageWords).filter((kind) => stageWords[kind]!.test(text)),
      },
    };
    const parts = question === null ? openingParts(facts) : withoutRepeats(await partsOf(facts)).slice(0, 8);
    return result(session, question, parts);
  } finally {
    await database.close();
  }
}

function openingParts({ explained }: StoredFacts): StoredPart[] {
  const sentences = explained.sentences.map((text) => ({ text, sql: null, from: 'explain', rows: null }));
  const findings = explained.findings.map(({ title, change, evidence }) => {
    const first = evidence.find(({ sql }) => sql !== null);
    return {
      text: `- ${title.replace(/[.\s]+$/, '')}: ${change.text}`,
      sql: first?.sql ?? null,
      from: 'findings',
      rows: first?.row_count ?? null,
    };
  });
  return [...sentences, ...findings];
}

/** The two kinds that fit best, then what the words name. A later kind is asked only where the first are silent. */
async function partsOf(facts: StoredFacts): Promise<StoredPart[]> {
  const fitting = questionKinds.filter(({ asks }) => asks.test(facts.question.text));
  const found: StoredPart[] = [];
  let answered = 0;
  for (const kind of fitting) {
    // "time" and "change" are what nearly every question is also about.
    if (answered >= 2 || (answered >= 1 && (kind.id === 'time' || kind.id === 'change'))) break;
    const parts = await kind.answer(facts);
    if (parts.length === 0) continue;
    found.push(...parts.slice(0, 4));
    answered++;
  }
  return [...byWords(facts).slice(0, answered > 0 ? 1 : 2), ...found];
}

function withoutRepeats(parts: readonly StoredPart[]): StoredPart[] {
  return parts.filter(({ text }, i) => parts.findIndex((one) => one.text === text) === i);
}

function result(session: Session, question: string | null, found: readonly StoredPart[]): AnalyzeResult {
  const missing = found.filter(({ silent }) => silent);
  const parts = missing.length === found.length ? [] : found;
  const queries: AskedQuery[] = [];
  const texts = parts.map(({ text, sql, from, rows }) => {
    const tool = sql === null ? from : 'sql';
    const known = queries.find((one) => one.tool === tool && one.input === sql);
    const id = known?.id ?? `q${queries.length + 1}`;
    if (!known) queries.push({ id, tool, input: sql, rows, error: null });
    const [first = '', ...rest] = text.split('\n');
    return [`${first} [${id}]`, ...rest].join('\n');
  });
  return {
    session: { id: session.id, name: session.user.name, title: session.manifest.title },
    question,
    answered_by: parts.length > 0 ? 'stored' : 'nobody',
    model: null,
    answer: parts.length > 0 ? texts.join('\n') : cannot(question ?? '', missing),
    claims: [],
    unverified: 0,
    queries,
    next_capture: null,
    usage: null,
  };
}

function cannot(question: string, missing: readonly StoredPart[]): string {
  const examples = questionKinds.slice(0, 6).map(({ example }) => `- ${example}`);
  return [
    `This cannot be answered without a model: nothing that is stored matches “${question}”.`,
    ...missing.map(({ text }) => text),
    'What can be asked without one, for example:',
    ...examples,
    'Or inferscope explain for all findings, inferscope sql for the tables; to ask a model set INFERSCOPE_AI_MODEL and its key (docs/analyze.md).',
  ].join('\n');
}
