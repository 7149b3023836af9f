import type { Command } from 'commander';
import type { Session } from '../session/open.js';
import { print, printDocument, terminalWidth } from './output.js';
import type { ExplainOptions } from './explain-typed.js';

type Options = ExplainOptions & { verify?: string };

/** `explain --verify AFTER`: what the session's findings promised beside what another session achieved. */
export const verifyExtension = {
  define(command: Command): void {
    command.option(
      '--verify <after>',
      'expected beside achieved: what the findings promised and what this session, with changes made, shows',
    );
  },
  async answer(session: Session, options: Options): Promise<boolean> {
    if (options.verify === undefined) return false;
    const [{ verifySessions }, { openSession }] = await Promise.all([
      import('../analyze/verify/verify.js'),
      import('../session/open.js'),
    ]);
    const { format, json, stage, html } = options;
    const found = await verifySessions(session, await openSession(options.verify));
    if (stage !== undefined) {
      found.data.stages = found.data.stages.filter(({ kind }) => kind === stage);
      found.data.changes = found.data.changes.filter((one) => one.stage === null || one.stage === stage);
    }
    if (html !== undefined) {
      const { writeExplainPage } = await import('./explain-page.js');
      await writeExplainPage(html, session, { verify: found });
    }
    if (json || format === 'json') printDocument(found);
    else if (format === 'md') {
      const { verifyMarkdown } = await import('../report/markdown/verify.js');
      print(verifyMarkdown(found));
    } else {
      const { verifyText } = await import('../report/terminal/verify.js');
      print(verifyText(found, terminalWidth()));
    }
    return true;
  },
};
