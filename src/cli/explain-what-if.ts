import { collect } from './command-line.js';
import type { Command } from 'commander';
import type { Session } from '../session/open.js';
import { showView } from './show-view.js';
import { refuseUnused } from './unused-options.js';
import type { ExplainOptions } from './explain-option-values.js';

type Options = ExplainOptions & { whatIf?: string[] };

/** `explain --what-if`: predicted stage times with changes. */
export const whatIfExtension = {
  define(command: Command): void {
    command.option(
      '--what-if <changes>',
      'predict stage times with changes: cudagraph, batch-size=32, dtype=float8, int4, fused-attention, fused-elementwise, no-sync, pinned-copies, no-slow-rank, equal-links, context-len=4096, gpu=H100; separate several by commas, or repeat',
      collect,
    );
  },
  refuseUnused(command: Command, { whatIf }: Options): void {
    if (whatIf === undefined) return;
    refuseUnused(command, ['failOn', 'sql', 'verbose', 'limit'], {
      why: '--what-if predicts times; it shows no findings.',
      fix: 'Remove it, or remove --what-if.',
    });
  },
  async answer(session: Session, options: Options): Promise<boolean> {
    if (options.whatIf === undefined) return false;
    const { whatIf } = await import('../advice/what-if/what-if.js');
    const { stage, rank, device } = options;
    const prediction = await whatIf(session, options.whatIf, {
      ...(rank === undefined ? {} : { rank }),
      ...(device === undefined ? {} : { device }),
    });
    if (stage !== undefined)
      prediction.data.stages = prediction.data.stages.filter(({ kind }) => kind === stage);
    const [{ whatIfView }, { cachedExplanation }] = await Promise.all([
      import('../views/what-if.js'),
      import('../advice/explain/explain.js'),
    ]);
    await showView(whatIfView(prediction, await cachedExplanation(session)), options);
    return true;
  },
};
