import process from 'node:process';
import type { Command } from 'commander';
import type { Document } from '../model/document.js';
import type { ExplainResult, Finding } from '../model/documents/explain.js';
import { InferscopeError } from '../model/errors.js';
import type { Session } from '../session/open.js';
import { defineContextOptions, saveContext, readContext } from './context-options.js';
import { examples } from './examples.js';
import { verifyExtension } from './explain-verify.js';
import { whatIfExtension } from './explain-what-if.js';
import { wholeNumberParser } from './numbers.js';
import { print } from './output.js';
import { refuseUnused } from './unused-options.js';
import { type ExplainOptions, stageKinds, formats, severities } from './explain-option-values.js';

/** Alternatives to the explanation: --what-if, --verify. Each adds its option and reports whether it was typed. */
interface ExplainExtension {
  define(command: Command): void;
  /** @throws E_USAGE for options without effect on its answer */
  refuseUnused(command: Command, options: ExplainOptions): void;
  /** @returns whether it printed an answer */
  answer(session: Session, options: ExplainOptions): Promise<boolean>;
}

const extensions: readonly ExplainExtension[] = [whatIfExtension, verifyExtension];

export function define(command: Command): void {
  command
    .description('show where time above the roofline goes, why, and what to change')
    .argument(
      '[session]',
      'id prefix, name, @last or @last~1; or a file to save as a session first: a capture or an exported session',
    )
    .option('--session <selector>', 'same as the argument', '@last')
    .option(
      '--stage <kind>',
      `show one stage only: ${stageKinds.join(', ')}`,
      choiceParser('--stage', stageKinds),
    )
    .option(
      '--format <format>',
      `${formats.join(', ')} (md: for a pull request)`,
      choiceParser('--format', formats),
      'text',
    )
    .option('--json', 'print one inferscope/explain document (same as --format json)')
    .option('--html <file>', 'also write a self-contained HTML page')
    .option(
      '--fail-on <severity>',
      `exit with code 1 on a finding of at least this severity: ${severities.join(', ')}`,
      choiceParser('--fail-on', severities),
    )
    .option(
      '--rank <n>',
      'rank to show (default: the slowest)',
      wholeNumberParser('--rank', { min: 0, example: 0 }),
    )
    .option('--device <n>', 'device to show', wholeNumberParser('--device', { min: 0, example: 0 }))
    .option(
      '--limit <n>',
      'number of findings to show (default: 3, with --verbose 10)',
      wholeNumberParser('--limit', { min: 0, example: 5 }),
    )
    .option('--verbose', 'show evidence, cause and verification of each finding')
    .option(
      '--sql <n>',
      'print the query of [sql <n>], for inferscope sql',
      wholeNumberParser('--sql', { min: 1, example: 1 }),
    );
  defineContextOptions(command);
  for (const extension of extensions) extension.define(command);
  command
    .addHelpText(
      'after',
      examples(
        [
          'inferscope explain llm-b1 --stage decode --format md --fail-on high',
          'write Markdown for a pull request and fail CI on findings',
        ],
        [
          'inferscope explain before --verify after --html verified.html',
          'compare expected with achieved gains, also as an HTML page',
        ],
      ),
    )
    .action(async (selector: string | undefined, options: ExplainOptions) => {
      refuseBoth(options);
      for (const extension of extensions) extension.refuseUnused(command, options);
      if (options.sql !== undefined)
        refuseUnused(command, ['format', 'json', 'html', 'verbose', 'limit'], {
          why: '--sql prints one query only.',
          fix: 'Remove it, or remove --sql.',
        });
      const [{ openSession }, { openSessionOrFile }] = await Promise.all([
        import('../session/open.js'),
        import('./session-or-file.js'),
      ]);
      if (options.html !== undefined) {
        const { ensureReportPath } = await import('./report-file.js');
        await ensureReportPath(options.html, '--html');
      }
      const context = await readContext(options);
      const opened = await openSessionOrFile(selector ?? options.session);
      const session = (await saveContext(opened.id, context)) ? await openSession(opened.id) : opened;
      for (const extension of extensions) if (await extension.answer(session, options)) return;
      const explanation = await explanationOf(session, options, command);
      if (options.sql === undefined) {
        const { explainView } = await import('../views/explain.js');
        const { showView } = await import('./show-view.js');
        const { limit, stage, verbose = false } = options;
        await showView(
          explainView(explanation, {
            limit: limit ?? (verbose ? 10 : undefined),
            allStages: stage !== undefined,
            flags: flagsOf(options),
            verbose,
          }),
          options,
          verbose ? 2 : 1,
        );
      } else await printQuery(explanation.data, options.sql);
      if (options.failOn !== undefined && worstRank(explanation.data) >= severityRank[options.failOn])
        process.exitCode = 1;
    });
}

/** @throws E_USAGE for --what-if together with --verify */
function refuseBoth(options: ExplainOptions & { whatIf?: string[]; verify?: string }): void {
  if (options.whatIf === undefined || options.verify === undefined) return;
  throw new InferscopeError('E_USAGE', {
    what: '--what-if and --verify are mutually exclusive',
    why: 'One predicts changes to a session, the other compares two sessions.',
    fix: 'Use one of them: inferscope explain <before> --verify <after>',
  });
}

/** Flags that choose what is shown, as typed. */
const flagsOf = ({ stage, rank, device }: ExplainOptions): string =>
  Object.entries({ stage, rank, device })
    .map(([name, value]) => (value === undefined ? '' : ` --${name} ${value}`))
    .join('');

async function explanationOf(
  session: Session,
  { rank, device, stage }: ExplainOptions,
  command: Command,
): Promise<Document<ExplainResult>> {
  const { explainSession, cachedExplanation } = await import('../advice/explain/explain.js');
  const explanation =
    rank === undefined && device === undefined
      ? await cachedExplanation(session)
      : await explainSession(session, {
          ...(rank === undefined ? {} : { rank }),
          ...(device === undefined ? {} : { device }),
        });
  // Only these are read from the rows of a rank.
  if (explanation.data.stages.every(({ source }) => source !== 'trace' && source !== 'operators'))
    refuseUnused(command, ['rank', 'device'], {
      why: 'The session has no timeline of ranks.',
      fix: 'Remove it.',
    });
  if (stage === undefined) return explanation;
  const data = await withStage(session, explanation.data, stage);
  if (data.stages.length === 0 && data.without_waterfall.every((why) => why.stage !== stage))
    throw noSuchStage(stage, explanation.data);
  return { ...explanation, data };
}

function noSuchStage(stage: string, { stages }: ExplainResult): InferscopeError {
  const kinds = [...new Set(stages.map(({ kind }) => kind))];
  return new InferscopeError('E_USAGE', {
    what: `the session has no stage ${stage}`,
    why: kinds.length === 0 ? 'It has no stages.' : `Its stages are: ${kinds.join(', ')}.`,
    fix: kinds.length === 0 ? 'Leave out --stage.' : `Type for example: --stage ${kinds[0]}`,
  });
}

/** A request consists of these: their findings explain its bars. */
const stepsOfRequests: ReadonlySet<string> = new Set(['prefill', 'decode', 'mixed', 'sampling']);

async function withStage(session: Session, data: ExplainResult, kind: string): Promise<ExplainResult> {
  const [{ stepsOfSession }, { summarySentences }] = await Promise.all([
    import('../advice/explain/next-steps.js'),
    import('../advice/explain/sentences.js'),
  ]);
  const stages = data.stages.filter((stage) => stage.kind === kind);
  const reasons = data.without_waterfall
    .filter(({ stage }) => stage === kind && stages.length === 0)
    .map(({ reason }) => `No waterfall of ${kind}: ${reason}.`);
  const findings = data.findings.filter(
    ({ stage }) => stage === null || stage === kind || (kind === 'request' && stepsOfRequests.has(stage)),
  );
  const without = data.without_waterfall.filter(({ stage }) => stage === null || stage === kind);
  return {
    ...data,
    preface: [...data.preface, ...reasons],
    sentences: summarySentences(stages, without, findings, {
      machine: data.machine,
      hasJudgedRules: data.rules.some(({ outcome }) => outcome !== 'not_applicable'),
    }).sentences,
    stages,
    findings,
    without_waterfall: without,
    next_steps: stepsOfSession(session, { stages, findings }),
  };
}

async function printQuery(data: ExplainResult, n: number): Promise<void> {
  const { numberedQueries } = await import('../views/explain-series.js');
  const queries = numberedQueries(data.findings);
  const query = queries[n - 1];
  if (query === undefined) {
    throw new InferscopeError('E_USAGE', {
      what: `there is no [sql ${n}]`,
      why:
        queries.length === 0
          ? 'No finding of this session has a query.'
          : `Its findings have queries 1 to ${queries.length}.`,
      fix: 'inferscope explain --format json has every query of every bar.',
    });
  }
  print(query);
}

const severityRank: Record<Finding['severity'], number> = { info: 0, low: 1, medium: 2, high: 3 };

const worstRank = ({ findings }: ExplainResult): number =>
  Math.max(0, ...findings.map(({ severity }) => severityRank[severity]));

/** Returns a parser of a flag that accepts only these words. */
function choiceParser<T extends string>(flag: string, allowed: readonly T[]): (text: string) => T {
  return (text) => {
    const choice = allowed.find((value) => value === text);
    if (choice !== undefined) return choice;
    throw new InferscopeError('E_USAGE', {
      what: `${flag} takes ${allowed.join(', ')}, not "${text}"`,
      why: 'inferscope explain --help shows every option.',
      fix: `inferscope explain ${flag} ${allowed[0]}`,
    });
  };
}
