import type { ExplainResult } from '../model/documents/explain.js';
import { explainSession } from '../advice/explain/explain.js';
import { gap, kernel, sessionOf, stage } from '../facts/trace/test-hand.js';
import type { Session } from '../session/open.js';
import type { AllowedData } from './allowable.js';
import { ask, type AskOptions } from './agent.js';
import type { ModelSettings } from './model-settings.js';
import { openingData } from './prompt.js';
import { redactor, surroundingsOf } from './redactor.js';
import { askTools } from './tools/index.js';
import type { ToolContext } from './tools/tool.js';

const settingsFor = (baseUrl: string, changes: Partial<ModelSettings> = {}): ModelSettings => ({
  provider: 'openai-compatible',
  baseUrl,
  baseUrlFrom: 'environment',
  model: 'scripted',
  apiKey: 'sk-test-0123456789abcdef',
  apiKeyEnv: 'OPENAI_API_KEY',
  timeoutMs: 5000,
  maxSteps: null,
  inputUsdPerMillion: null,
  outputUsdPerMillion: null,
  ...changes,
});

/** A session with three decode steps of 100 µs, each with one kernel of 40 µs and the given name. */
export function smallSession(name = 'gemm_kernel'): Promise<Session> {
  const steps = [0, 1, 2];
  return sessionOf({
    stages: steps.map((i) => stage(i + 1, 'decode', 100 * i, 100 * (i + 1), { step_index: i })),
    kernels: steps.map((i) => kernel(i + 1, 100 * i + 10, 40, { name, short_name: name })),
    gaps: steps.map((i) => gap(100 * i + 50, { host: 60 })),
  });
}

const explanations = new Map<Session, Promise<ExplainResult>>();
function explain(session: Session): Promise<ExplainResult> {
  const known = explanations.get(session) ?? explainSession(session).then(({ data }) => data);
  explanations.set(session, known);
  return known;
}

const surroundingsOfSessions = new Map<Session, ReturnType<typeof surroundingsOf>>();
function readSurroundings(session: Session, env: Record<string, string>): ReturnType<typeof surroundingsOf> {
  if (Object.keys(env).length > 0) return surroundingsOf([session], env);
  const known = surroundingsOfSessions.get(session) ?? surroundingsOf([session], env);
  surroundingsOfSessions.set(session, known);
  return known;
}

/** Tools for a session; SQL runs in this process (test/cli tests the child process). */
export function contextOf(session: Session): ToolContext {
  return {
    sessions: [session],
    async query(sql) {
      const database = await session.connect();
      try {
        const rows = await database.query<Record<string, string | number | null>>(sql);
        const columns = Object.keys(rows[0] ?? {}).map((column) => ({ name: column, type: '' }));
        return { columns, rows: rows.map((row) => Object.values(row)), truncated: false };
      } finally {
        await database.close();
      }
    },
    explain,
  };
}

/** Asks `Why is decode slow?`, or the question in `changes`, about a session; the model is the server at `baseUrl`. */
export async function askModel(
  session: Session,
  baseUrl: string,
  changes: Omit<Partial<AskOptions>, 'settings'> & {
    settings?: Partial<ModelSettings>;
    allowed?: AllowedData[];
    env?: Record<string, string>;
  } = {},
) {
  const { settings, allowed = [], env = {}, ...options } = changes;
  const context = contextOf(session);
  return ask({
    settings: settingsFor(baseUrl, settings),
    mode: 'question',
    question: 'Why is decode slow?',
    opening: openingData(session, await context.explain(session)),
    tools: askTools(new Set(allowed)),
    context,
    redact: redactor(await readSurroundings(session, env), new Set(allowed)),
    signal: new AbortController().signal,
    ...options,
  });
}
