import type { LanguageModelUsage, ModelMessage } from 'ai';
import type { Session } from '../session/open.js';
import type { AnalyzeResult } from '../model/documents/analyze.js';
import { figure, type Figure, missing } from '../model/figure.js';
import { AskBudget, type AskLimits } from './budget.js';
import { checkClaims } from './check-claims.js';
import { evidenceOf } from './evidence.js';
import { languageModel } from './language-model.js';
import { modelFailure, refusesTools } from './model-failure.js';
import { type ModelSettings, requireKey } from './model-settings.js';
import { type AskMode, firstMessage, systemPrompt } from './prompt.js';
import { type RecordedQuery, recorder, toolSet, withoutData } from './recorder.js';
import type { Redactor } from './redactor.js';
import { programNames } from './program-names.js';
import { plural } from '../vocabulary/format.js';
import type { AskTool, ToolContext } from './tools/tool.js';

export interface AskOptions {
  settings: ModelSettings;
  mode: AskMode;
  question: string;
  /** Data sent with the question, [q0]; redacted here. */
  opening: unknown;
  tools: readonly AskTool[];
  context: ToolContext;
  redact: Redactor;
  signal: AbortSignal;
  /** Replaces the default limits. */
  limits?: Partial<AskLimits>;
  /** Earlier messages and queries to continue from. */
  before?: { messages: ModelMessage[]; queries: RecordedQuery[] };
  onQuery?: (query: RecordedQuery) => void;
  /** Called with notes for the user about the answer. */
  onNote?: (text: string) => void;
}

type AskResult = Pick<AnalyzeResult, 'answer' | 'claims' | 'unverified' | 'usage' | 'next_capture'> & {
  /** Only the queries of this answer. */
  queries: RecordedQuery[];
  /** Question, calls, results and answer, for the next question. */
  messages: ModelMessage[];
};

const defaultSteps: Record<AskMode, number> = { question: 10, deeper: 30, narrative: 4, comparison: 6 };

/**
 * Asks the model, which may call the read-only tools, and checks every number of its answer against their results.
 * @throws errors from modelFailure; E_MODEL_ACCESS without a key
 */
export async function ask(options: AskOptions): Promise<AskResult> {
  const { settings, mode, redact, signal, before } = options;
  requireKey(settings);
  const question = redact.text(options.question);
  const budget = new AskBudget(options.limits);
  const record = recorder(
    options.context,
    redact,
    budget.limits.callsAtOnce,
    (before?.queries ?? []).filter(({ id }) => id !== 'q0').length,
  );
  const opening = redact.json(options.opening);
  const user: ModelMessage = {
    role: 'user',
    content: before ? question : firstMessage(question, opening),
  };
  const steps = Math.max(1, settings.maxSteps ?? defaultSteps[mode]);
  const result = await requestReplies(options, user, record, steps, budget);
  const openingQueries: RecordedQuery[] = before ? [] : [openingQuery(mode, opening)];
  const allQueries = [...(before?.queries ?? []), ...openingQueries, ...record.queries];
  const names = (await Promise.all(options.context.sessions.map(programNames))).flat();
  const known = evidenceOf(allQueries, question, [...new Set([...names, ...names.map(redact.text)])]);
  const answerText = result.text.trim();
  const cutAnswer = answerText.slice(0, budget.limits.answerCharacters);
  if (cutAnswer.length < answerText.length)
    options.onNote?.(`the answer was cut from ${answerText.length} to ${cutAnswer.length} characters`);
  const { text, claims } = checkClaims(cutAnswer, known, question, new Set(allQueries.map(({ id }) => id)));
  signal.throwIfAborted();
  return {
    answer: text || 'The model gave no answer; --model none answers from the session alone.',
    claims,
    unverified: claims.filter(({ verified }) => !verified).length,
    queries: [...openingQueries, ...record.queries],
    next_capture: mode === 'deeper' ? proposedCapture(cutAnswer) : null,
    usage: {
      steps: result.steps.length,
      input_tokens: result.totalUsage.inputTokens ?? null,
      output_tokens: result.totalUsage.outputTokens ?? null,
      cost_usd: costOf(settings, result.totalUsage.inputTokens, result.totalUsage.outputTokens),
    },
    messages: [user, ...result.response.messages],
  };
}

/** The document of a model's answer. */
export function modelAnswer(
  session: Session,
  { model }: ModelSettings,
  question: string | null,
  { answer, claims, unverified, queries, next_capture, usage }: AskResult,
): AnalyzeResult {
  return {
    session: { id: session.id, name: session.user.name, title: session.manifest.title },
    question,
    answered_by: 'model',
    model,
    answer,
    claims,
    unverified,
    queries: queries.map(withoutData),
    next_capture,
    usage,
  };
}

const openingQuery = (mode: AskMode, data: unknown): RecordedQuery => ({
  id: 'q0',
  tool: mode === 'comparison' ? 'comparison' : 'findings',
  input: null,
  rows: 1,
  error: null,
  data,
});

async function requestReplies(
  { settings, mode, tools, signal, before, onQuery, onNote }: AskOptions,
  user: ModelMessage,
  record: ReturnType<typeof recorder>,
  steps: number,
  budget: AskBudget,
) {
  const { generateText, stepCountIs } = await import('ai');
  let reported = 0;
  let mustAnswer = false;
  const { callsPerReply } = budget.limits;
  const request = {
    model: await languageModel(settings, budget, {
      onDropped: (calls) =>
        onNote?.(
          `${plural(calls, 'more tool call', 'more tool calls')} of one reply ${calls === 1 ? 'was' : 'were'} dropped: the limit is ${callsPerReply} per reply`,
        ),
    }),
    system: systemPrompt(mode),
    messages: [...(before?.messages ?? []), user],
    abortSignal: signal,
  };
  try {
    return await generateText({
      ...request,
      tools: await toolSet(tools, record),
      stopWhen: [stepCountIs(steps), () => mustAnswer],
      prepareStep({ stepNumber, steps: finishedSteps }) {
        const usedUp = budget.usedUp(tokensOf(finishedSteps));
        if (usedUp !== null)
          onNote?.(`this question has used ${usedUp}, its limit: the next reply is the answer`);
        mustAnswer = usedUp !== null || stepNumber === steps - 1;
        return mustAnswer ? { toolChoice: 'none' } : {};
      },
      onStepFinish: ({ toolCalls }) => {
        for (const call of toolCalls)
          if (call.invalid) record.refused(call.toolName, call.input, call.error ?? 'not understood');
        for (; reported < record.queries.length; reported++) onQuery?.(record.queries[reported]!);
      },
    });
  } catch (error) {
    if (!(await refusesTools(error))) throw await modelFailure(error, settings, signal.aborted);
  }
  onNote?.(`${settings.model} takes no tools: it answers only from the data sent with the question, [q0]`);
  try {
    return await generateText(request);
  } catch (error) {
    throw await modelFailure(error, settings, signal.aborted);
  }
}

/** As counted by the provider; 0 if it does not report them. */
const tokensOf = (steps: readonly { usage: LanguageModelUsage }[]): number =>
  steps.reduce((sum, { usage }) => sum + (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0), 0);

/** Cost of the counted tokens at the configured prices. */
function costOf(settings: ModelSettings, input: number | undefined, output: number | undefined): Figure {
  const { inputUsdPerMillion: priceIn, outputUsdPerMillion: priceOut } = settings;
  if (priceIn === null || priceOut === null)
    return missing(
      'no_price',
      'no price is configured (input_usd_per_million, output_usd_per_million of ai: in inferscope.yaml)',
    );
  if (input === undefined || output === undefined)
    return missing('no_usage', 'the server did not report token counts');
  return figure(
    (input * priceIn + output * priceOut) / 1e6,
    'USD',
    'tokens counted by the provider × configured prices',
  );
}

const captureCommand =
  /^inferscope (?:run|profile|bench|memory|monitor|roofline|kernels)\b[^\n;&|`$<>]*(?:<[\w ]+>[^\n;&|`$<>]*)*$/;

/** The command line proposed for --deeper; null unless it is a plain inferscope command line. */
export function proposedCapture(answer: string): string | null {
  const line = /^\W*Next capture:\W*?(inferscope [^\n`*]+)/im.exec(answer)?.[1]?.trim();
  return line !== undefined && captureCommand.test(line) ? line : null;
}
