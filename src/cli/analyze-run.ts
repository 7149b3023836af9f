import { randomBytes } from 'node:crypto';
import process from 'node:process';
import type { ModelSettings } from '../ask/model-settings.js';
import { document, type Document } from '../model/document.js';
import { type AnalyzeResult, analyzeVersion } from '../model/documents/analyze.js';
import { InferscopeError } from '../model/errors.js';
import { childEntry } from '../model/installation.js';
import type { Session } from '../session/open.js';
import { abortable } from './interrupt.js';
import { configuredModel } from './analyze-settings.js';
import { print, printDocument, notify, terminalWidth, warn } from './output.js';
import type { AllowedData } from '../ask/allowable.js';
import { cutEnd } from '../vocabulary/cut.js';

export interface AnalyzeOptions {
  session: string;
  question?: string;
  deeper?: boolean;
  dryRun?: boolean;
  allow: AllowedData[];
  model?: string;
  continue?: boolean;
  sql?: number;
  json?: boolean;
}

/** `inferscope analyze` */
export async function analyzeCommand(selector: string, requested: AnalyzeOptions): Promise<void> {
  const { question = '', ...rest } = requested;
  const options: AnalyzeOptions = question.trim() === '' ? rest : requested;
  const settings = await configuredModel(options.model);
  const { openSession } = await import('../session/open.js');
  const session = await openSession(selector);
  if (options.sql !== undefined) {
    await printQuery(session, settings, options);
    return;
  }
  if (settings === null) {
    refuseModelOptions(options);
    const { storedAnswer } = await import('../ask/stored/stored-answer.js');
    const result = await storedAnswer(session, options.question ?? null);
    await showAnswer(document('analyze', analyzeVersion, result), options);
    if (options.deeper)
      notify('--deeper needs a model, and none is configured: see inferscope analyze --help');
    return;
  }
  if (options.dryRun) return printRequest(session, settings, options);
  const result = await abortable((signal) => askModel(session, settings, options, signal));
  await showAnswer(document('analyze', analyzeVersion, result), options);
}

/** @throws E_USAGE for options that need a model */
function refuseModelOptions(options: AnalyzeOptions): void {
  if (options.dryRun) throw noModel('--dry-run needs a model');
  if (options.continue) throw noModel('--continue needs a model');
}

function noModel(what: string): InferscopeError {
  return new InferscopeError('E_USAGE', {
    what: `${what}: no model is configured`,
    why: 'Neither the environment nor inferscope.yaml names a model.',
    fix: howToSet,
  });
}

export const howToSet =
  'export INFERSCOPE_AI_MODEL=<model> and its key (OPENAI_API_KEY), or INFERSCOPE_AI_URL=http://host:port/v1 for your own server, or INFERSCOPE_AI_PROVIDER=anthropic with ANTHROPIC_API_KEY; or the section ai: in inferscope.yaml (docs/guides/ask-questions.md).';

async function prepareRequest(session: Session, options: AnalyzeOptions) {
  const [{ openingData, defaultQuestion }, { sessionContext }, { redactor, surroundingsOf }, { askTools }] =
    await Promise.all([
      import('../ask/prompt.js'),
      import('../ask/session-context.js'),
      import('../ask/redactor.js'),
      import('../ask/tools/index.js'),
    ]);
  const allowed = new Set(options.allow);
  const mode = options.deeper ? ('deeper' as const) : ('question' as const);
  const salt = randomBytes(8).toString('hex');
  const context = sessionContext([session], childEntry('sql-child'), allowed, salt);
  const redact = redactor(await surroundingsOf([session], process.env), allowed);
  const { earlierMessages } = await import('../ask/conversation.js');
  return {
    mode,
    question: options.question ?? defaultQuestion(mode),
    opening: openingData(session, await context.explain(session)),
    tools: askTools(allowed),
    context,
    redact,
    ...(options.continue ? { before: await earlierMessages(session, redact) } : {}),
  };
}

async function askModel(
  session: Session,
  settings: ModelSettings,
  options: AnalyzeOptions,
  signal: AbortSignal,
): Promise<AnalyzeResult> {
  const { requireKey } = await import('../ask/model-settings.js');
  requireKey(settings);
  const prepared = await prepareRequest(session, options);
  notify(`asking ${settings.model} at ${new URL(settings.baseUrl).host} (--dry-run shows what is sent)`);
  const { ask, modelAnswer } = await import('../ask/agent.js');
  const answer = await ask({
    ...prepared,
    settings,
    signal,
    onNote: notify,
    onQuery: ({ id, tool, input, error }) =>
      notify(
        `  [${id}] ${tool}${input === null ? '' : ` ${oneLine(input)}`}${error === null ? '' : ' (failed)'}`,
      ),
  });
  const { saveTurn } = await import('../ask/conversation.js');
  const turn = {
    at: new Date().toISOString(),
    question: prepared.question,
    model: settings.model,
    answer: answer.answer,
    queries: answer.queries,
    messages: answer.messages,
  };
  try {
    await saveTurn(session, turn, options.continue === true);
  } catch (error) {
    // The store may be read-only; the answer is shown anyway.
    if (!(error instanceof InferscopeError)) throw error;
    warn(`the conversation was not saved: ${error.parts.what}`);
  }
  return modelAnswer(session, settings, options.question ?? null, answer);
}

const oneLine = (text: string): string => {
  const line = text.replaceAll(/\s+/g, ' ').replaceAll(/\p{Cc}/gu, ' ');
  return cutEnd(line, 60);
};

async function printRequest(
  session: Session,
  settings: ModelSettings,
  options: AnalyzeOptions,
): Promise<void> {
  const { firstRequest } = await import('../ask/first-request.js');
  const request = await firstRequest({ ...(await prepareRequest(session, options)), settings });
  const requestDocument = document('analyze-request', analyzeVersion, request);
  if (options.json) {
    printDocument(requestDocument);
    return;
  }
  const { requestView } = await import('../views/analyze.js');
  const { terminalView } = await import('../render/terminal/view.js');
  print(terminalView(requestView(requestDocument), { width: terminalWidth() }));
  notify('nothing was sent');
}

/** @throws E_USAGE when there is no such query, or it is not SQL */
async function printQuery(
  session: Session,
  settings: ModelSettings | null,
  { question, sql: queryNumber }: AnalyzeOptions,
): Promise<void> {
  const { readConversation } = await import('../ask/conversation.js');
  const { storedAnswer } = await import('../ask/stored/stored-answer.js');
  const queries = settings
    ? ((await readConversation(session)).at(-1)?.queries ?? [])
    : (await storedAnswer(session, question ?? null)).queries;
  const query = queries.find(({ id }) => id === `q${queryNumber}`);
  if (query?.tool === 'sql' && query.input !== null) {
    print(query.input);
    return;
  }
  const ids = queries
    .filter(({ tool, input }) => tool === 'sql' && input !== null)
    .map(({ id }) => `[${id}]`);
  throw new InferscopeError('E_USAGE', {
    what: query ? `[q${queryNumber}] has no SQL: it is from ${query.tool}` : `there is no [q${queryNumber}]`,
    why: ids.length > 0 ? `With SQL: ${ids.join(', ')}.` : 'The answer uses no SQL.',
    fix: 'Add --sql with one of these numbers to the same command; --json has all of them.',
  });
}

async function showAnswer(answer: Document<AnalyzeResult>, { json }: AnalyzeOptions): Promise<void> {
  if (json) {
    printDocument(answer);
    return;
  }
  const { viewOf } = await import('../views/registry.js');
  const { terminalView } = await import('../render/terminal/view.js');
  const view = await viewOf({ kind: 'analyze', document: answer });
  print(terminalView(view, { width: terminalWidth() }));
}
