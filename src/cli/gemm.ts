import type { Command } from 'commander';
import { InferscopeError } from '../model/errors.js';
import { stageKinds } from '../model/record.js';
import { examples } from './examples.js';
import { wholeNumberParser } from './numbers.js';
import { print, printDocument, terminalWidth } from './output.js';

const stageNames: readonly string[] = stageKinds.filter((kind) => kind !== 'other');

interface GemmOptions {
  session: string;
  stage?: string;
  limit?: number;
  json?: boolean;
  csv?: boolean;
}

export function define(command: Command): void {
  command
    .argument('[session]', 'id prefix, name, @last or @last~1')
    .option('--session <selector>', 'same as the argument', '@last')
    .option('--stage <kind>', `only GEMMs of one stage: ${stageNames.join(', ')}`, parseStage)
    .option(
      '--limit <n>',
      'show only the n most expensive shapes (default: 20 in the terminal)',
      wholeNumberParser('--limit', { min: 1, example: 20 }),
    )
    .option('--json', 'print one inferscope/gemms document')
    .option('--csv', 'print CSV, one row per shape and source')
    .addHelpText(
      'after',
      examples(
        ['inferscope gemm --stage decode', 'list GEMMs per decode step in the newest session'],
        ['inferscope gemm --session llm-b1 --csv > gemms.csv', 'write all GEMMs for a spreadsheet'],
      ),
    )
    .action(async (selector: string | undefined, options: GemmOptions) => {
      if (options.json && options.csv) {
        throw new InferscopeError('E_USAGE', {
          what: '--json and --csv are mutually exclusive',
          why: 'stdout takes one format.',
          fix: 'inferscope gemm --json',
        });
      }
      const [{ analyzeGemms }, { openSession }, { withRows }] = await Promise.all([
        import('../facts/gemms/gemms.js'),
        import('../session/open.js'),
        import('../session/select.js'),
      ]);
      const withGemms = withRows('operators or BLAS calls', 'ops', 'gemms');
      const session = await openSession(selector ?? options.session, undefined, withGemms);
      const gemms = await analyzeGemms(session, { stage: options.stage ?? null });
      if (gemms.data.gemms.length === 0) {
        const all = options.stage === undefined ? gemms : await analyzeGemms(session, { stage: null });
        throw noGemms(session.id, options.stage, all.data.gemms);
      }
      const { limit } = options;
      if (limit !== undefined)
        gemms.data.gemms = gemms.data.gemms.slice(0, options.json || options.csv ? limit : undefined);
      if (options.json) printDocument(gemms);
      else if (options.csv) {
        const { gemmCsv } = await import('../export/gemm-csv.js');
        print(gemmCsv(gemms.data.gemms));
      } else {
        const [{ gemmsView }, { terminalView }] = await Promise.all([
          import('../views/gemms.js'),
          import('../render/terminal/view.js'),
        ]);
        print(terminalView(gemmsView(gemms, limit), { width: terminalWidth(), level: 2 }));
      }
    });
}

function parseStage(text: string): string {
  if (stageNames.includes(text)) return text;
  throw new InferscopeError('E_USAGE', {
    what: `unknown stage "${text}"`,
    why: `Stages are ${stageNames.join(', ')}.`,
    fix: 'Type for example --stage decode.',
  });
}

function noGemms(
  id: string,
  stage: string | undefined,
  others: readonly { stages: readonly string[] }[],
): InferscopeError {
  const what = `session ${id} has no GEMM with a known shape${stage === undefined ? '' : ` in ${stage}`}`;
  const stages = [...new Set(others.flatMap((gemm) => gemm.stages))].sort();
  if (others.length > 0)
    return new InferscopeError('E_USAGE', {
      what,
      why:
        stages.length > 0
          ? `It has GEMMs in ${stages.join(', ')}.`
          : 'Its GEMMs were recorded without stages.',
      fix: `To list all of them: inferscope gemm ${id}`,
    });
  return new InferscopeError('E_USAGE', {
    what,
    why: 'Shapes come from the PyTorch profiler (record_shapes) and from cuBLAS logs; nsys records none, and logs do not record stages.',
    fix: 'Record them: inferscope run --evaluator torch --gemm-log -- <command>',
  });
}
