import process from 'node:process';
import { Option, type Command } from 'commander';
import { exitCodeOf, InferscopeError } from '../model/errors.js';
import type { Gate } from '../compare/metrics/compare.js';
import { examples } from './examples.js';

interface CompareOptions {
  failOn: Gate[];
  withinProcess?: boolean;
  json?: boolean;
}

export function defineCompare(command: Command): void {
  command
    .summary('compare two benchmarks and mark significant changes')
    .description(
      'compare two benchmarks and mark significant changes; each side is a session (id, name, @last, @last~1), a baseline by name, or its file; SESSION:LABEL selects one variant, e.g. @last:mode=eager',
    )
    .addOption(
      new Option(
        '--fail-on <metric=share>',
        'exit with code 1 when this metric is significantly worse by more than this share; repeat or separate by commas',
      )
        .argParser(parseGates)
        .default([], 'none'),
    )
    .option(
      '--within-process',
      'treat repeats of one process as independent (ignores variation between launches)',
    )
    .option('--json', 'print one inferscope/bench-compare document')
    .addHelpText(
      'after',
      examples(
        [
          'inferscope bench compare @last~1 @last --fail-on tpot=5%',
          'compare the newest run with the one before, in CI',
        ],
        [
          'inferscope bench compare @last:mode=eager @last:mode=cudagraph',
          'compare two variants of one session by label',
        ],
      ),
    )
    .action(async (base: string, newer: string, options: CompareOptions) => {
      const [{ comparedSide, refuseSame }, { compareSides }, { document }] = await Promise.all([
        import('../compare/metrics/bench-side.js'),
        import('../compare/metrics/compare.js'),
        import('../model/document.js'),
      ]);
      const [from, to] = [await comparedSide(base), await comparedSide(newer)];
      refuseSame(from.side, to.side);
      const comparison = document(
        'bench-compare',
        '1.0',
        compareSides(from, to, { gates: options.failOn, withinProcess: options.withinProcess === true }),
      );
      const [{ benchCompareView }, { showView }] = await Promise.all([
        import('../views/bench-compare.js'),
        import('./show-view.js'),
      ]);
      await showView(benchCompareView(comparison), { format: options.json ? 'json' : 'text' });
      if (comparison.data.result === 'failed') process.exitCode = exitCodeOf.E_CHECK_FAILED;
    });
}

/** `tpot=5%`, `tpot=0.05`, `ttft=10%,tpot=5%`; commander passes the values typed before. @throws E_USAGE */
export function parseGates(text: string, before: Gate[] = []): Gate[] {
  return [
    ...before,
    ...text.split(',').map((part): Gate => {
      const match = /^\s*([A-Za-z][\w.]*)\s*=\s*(\d+(?:\.\d+)?)\s*(%?)\s*$/.exec(part);
      const share = match ? Number(match[2]) / (match[3] ? 100 : 1) : Number.NaN;
      if (share >= 0 && share < 1) return { metric: match![1]!, share };
      throw new InferscopeError('E_USAGE', {
        what: `--fail-on ${text} cannot be read at "${part.trim()}"`,
        why: 'It takes the name of a metric and a percentage below 100 % or a fraction below 1.',
        fix: 'Type for example: --fail-on tpot=5%,ttft=10%',
      });
    }),
  ];
}
