import { randomBytes } from 'node:crypto';
import process from 'node:process';
import type { AskMode } from '../ask/prompt.js';
import { mayQueryAutomatically, type ModelSettings } from '../ask/model-settings.js';
import type { Document } from '../model/document.js';
import type { AnalyzeResult } from '../model/documents/analyze.js';
import type { CompareResult } from '../model/documents/compare.js';
import type { ExplainResult } from '../model/documents/explain.js';
import { InferscopeError, messageOf } from '../model/errors.js';
import { childEntry } from '../model/installation.js';
import type { Session } from '../session/open.js';
import { abortable } from './interrupt.js';
import { howToSet } from './analyze-run.js';
import { configuredModel } from './analyze-settings.js';
import { notify, terminalWidth, warn } from './output.js';

/**
 * Asks the configured model for a narrative of a new session's findings, as terminal text. Null without findings or a
 * model, with a message if the project's file names the server, and with a warning if the model fails: `run` and
 * `import` are complete at this point.
 */
export async function narrateExplanation(
  session: Session,
  explain: Document<ExplainResult> | null,
): Promise<string | null> {
  if (explain === null) return null;
  const narrative = await nullWithWarning(async () => {
    const settings = await configuredModel();
    if (settings === null) return null;
    if (!mayQueryAutomatically(settings)) {
      notify(
        `no narrative: only inferscope analyze uses ${settings.baseUrl}, because this project's inferscope.yaml names it; set INFERSCOPE_AI_URL to use it here too`,
      );
      return null;
    }
    const { openingData } = await import('../ask/prompt.js');
    return narrate([session], settings, 'narrative', openingData(session, explain.data));
  });
  return narrative && narrativeLines(narrative);
}

export async function narrativeLines(result: AnalyzeResult): Promise<string> {
  const { answerBlocks } = await import('../views/analyze.js');
  const { terminalBlocks } = await import('../render/terminal/view.js');
  return terminalBlocks(answerBlocks(result), terminalWidth());
}

/** The model for `session compare --ai`; null with a warning that says what to set when none is configured. */
export async function modelForComparison(): Promise<ModelSettings | null> {
  const settings = await configuredModel();
  if (settings === null) warn(`no narrative: no model is configured; ${howToSet}`);
  return settings;
}

/** A narrative of a comparison; null, with a warning, when the model fails. */
export async function narrateComparison(
  sessions: readonly Session[],
  comparison: CompareResult,
  settings: ModelSettings,
): Promise<AnalyzeResult | null> {
  const { comparisonData } = await import('../ask/prompt.js');
  return nullWithWarning(() => narrate(sessions, settings, 'comparison', comparisonData(comparison)));
}

async function narrate(
  sessions: readonly Session[],
  settings: ModelSettings,
  mode: AskMode,
  opening: unknown,
): Promise<AnalyzeResult> {
  const [
    { ask, modelAnswer },
    { defaultQuestion },
    { sessionContext },
    { redactor, surroundingsOf },
    { askTools },
  ] = await Promise.all([
    import('../ask/agent.js'),
    import('../ask/prompt.js'),
    import('../ask/session-context.js'),
    import('../ask/redactor.js'),
    import('../ask/tools/index.js'),
  ]);
  const nothingAllowed = new Set<never>();
  const context = sessionContext(
    sessions,
    childEntry('sql-child'),
    nothingAllowed,
    randomBytes(8).toString('hex'),
  );
  const redact = redactor(await surroundingsOf(sessions, process.env), nothingAllowed);
  notify(`asking ${settings.model} at ${new URL(settings.baseUrl).host} for a narrative`);
  const question = defaultQuestion(mode);
  const answer = await abortable((signal) =>
    ask({
      settings,
      mode,
      question,
      opening,
      tools: askTools(nothingAllowed),
      context,
      redact,
      signal,
      onNote: notify,
    }),
  );
  return modelAnswer(sessions[0]!, settings, null, answer);
}

async function nullWithWarning<T>(work: () => Promise<T | null>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    const why =
      error instanceof InferscopeError ? `${error.parts.what}. ${error.parts.why}` : messageOf(error);
    warn(`no narrative: ${why.replaceAll(/\p{Cc}+/gu, ' ')}`);
    return null;
  }
}
