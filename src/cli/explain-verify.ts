import type { Command } from 'commander';
import type { Session } from '../session/open.js';
import { showView } from './show-view.js';
import { refuseUnused } from './unused-options.js';
import type { ExplainOptions } from './explain-option-values.js';

type Options = ExplainOptions & { verify?: string };

/** `explain --verify AFTER`: expected gains of the session's findings next to those achieved in another session. */
export const verifyExtension = {
  define(command: Command): void {
    command.option(
      '--verify <after>',
      "compare the findings' expected gains with those achieved in this later session",
    );
  },
  refuseUnused(command: Command, { verify }: Options): void {
    if (verify === undefined) return;
    refuseUnused(command, ['failOn', 'sql', 'verbose', 'limit', 'rank', 'device'], {
      why: '--verify lists every finding of both sessions, of the slowest rank and device.',
      fix: `Remove it, or explain the later session: inferscope explain ${verify}`,
    });
  },
  async answer(session: Session, options: Options): Promise<boolean> {
    if (options.verify === undefined) return false;
    const [{ verifiedStage, verifySessions }, { openSessionOrFile }] = await Promise.all([
      import('../advice/verify/verify.js'),
      import('./session-or-file.js'),
    ]);
    const { stage } = options;
    const verdict = await verifySessions(session, await openSessionOrFile(options.verify));
    if (stage !== undefined) {
      verdict.data = verifiedStage(verdict.data, stage);
    }
    const [{ verifyView }, { cachedExplanation }] = await Promise.all([
      import('../views/verify.js'),
      import('../advice/explain/explain.js'),
    ]);
    await showView(verifyView(verdict, await cachedExplanation(session)), options);
    return true;
  },
};
