import type { Command } from 'commander';
import type { Session } from '../session/open.js';
import { print, printDocument, terminalWidth } from './output.js';
import type { ExplainOptions } from './explain-typed.js';

type Options = ExplainOptions & { whatIf?: string[] };

/** `explain --what-if`: the stages' times under changes. */
export const whatIfExtension = {
  define(command: Command): void {
    command.option(
      '--what-if <changes>',
      'times of the stages under changes: cudagraph, batch-size=32, dtype=float8, int4, fused-attention, fused-elementwise, no-sync, pinned-copies, context-len=4096, gpu=H100; several by commas, or repeated',
      (text: string, before: string[] = []) => [...before, text],
    );
  },
  async answer(session: Session, options: Options): Promise<boolean> {
    if (options.whatIf === undefined) return false;
    const { whatIf } = await import('../analyze/what-if/what-if.js');
    const { format, json, stage, rank, device, html } = options;
    const found = await whatIf(session, options.whatIf, {
      ...(rank === undefined ? {} : { rank }),
      ...(device === undefined ? {} : { device }),
    });
    if (stage !== undefined) found.data.stages = found.data.stages.filter(({ kind }) => kind === stage);
    if (html !== undefined) {
      const { writeExplainPage } = await import('./explain-page.js');
      await writeExplainPage(html, session, { whatIf: found });
    }
    if (json || format === 'json') printDocument(found);
    else if (format === 'md') {
      const { whatIfMarkdown } = await import('../report/markdown/what-if.js');
      print(whatIfMarkdown(found));
    } else {
      const { whatIfText } = await import('../report/terminal/what-if.js');
      print(whatIfText(found, terminalWidth()));
    }
    return true;
  },
};
