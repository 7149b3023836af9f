import type { Command } from 'commander';
import { type DType, parseDType } from '../model/dtype.js';
import { examples } from './examples.js';
import { wholeNumber } from './numbers.js';
import { print, printDocument, terminalWidth } from './output.js';

interface UtilizationCommandOptions {
  model?: string;
  dtype?: DType;
  batchSize?: number;
  inputLen?: number;
  explain?: boolean;
  json?: boolean;
}

/** Adds `session utilization` to the command `session`. */
export function defineUtilization(command: Command): void {
  command
    .command('utilization')
    .description('show MFU and MBU per stage and step, with formula and inputs')
    .argument('[session]', 'id prefix, name, @last or @last~1', '@last')
    .option('--model <name>', 'model that ran: preset, config.json, or a folder that has one')
    .option('--dtype <dtype>', 'compute dtype, if the session does not record it', parseDType)
    .option('--batch-size <n>', 'batch size, if stages do not record it', wholeNumber('--batch-size', 1, 8))
    .option(
      '--input-len <n>',
      'prompt tokens per sequence, if stages do not record it',
      wholeNumber('--input-len', 1, 128),
    )
    .option('--explain', 'show the formulas with every input and its source')
    .option('--json', 'print one inferscope/utilization document')
    .addHelpText(
      'after',
      examples(
        ['inferscope session utilization llm-b1 --explain', 'show how each figure is computed'],
        [
          'inferscope session utilization @last --model llama-3.1-8b --batch-size 1',
          'for a capture that records neither model nor batch size',
        ],
      ),
    )
    .action(async (selector: string, options: UtilizationCommandOptions) => {
      const [{ analyzeUtilization }, { openSession }, { withRows }, { findModel }] = await Promise.all([
        import('../facts/utilization/utilization.js'),
        import('../session/open.js'),
        import('../session/select.js'),
        import('../engines/model-files/find-model.js'),
      ]);
      const { model, dtype, batchSize, inputLen } = options;
      const session = await openSession(selector, undefined, withRows('stages', 'stages'));
      const found = await analyzeUtilization(session, {
        ...(model === undefined ? {} : { model: await findModel(model) }),
        ...(dtype === undefined ? {} : { dtype }),
        ...(batchSize === undefined ? {} : { batchSize }),
        ...(inputLen === undefined ? {} : { inputLen }),
      });
      if (options.json) {
        printDocument(found);
        return;
      }
      const [{ utilizationView }, { terminalView }] = await Promise.all([
        import('../views/utilization.js'),
        import('../render/terminal/view.js'),
      ]);
      print(terminalView(utilizationView(found, options.explain === true), { width: terminalWidth() }));
    });
}
