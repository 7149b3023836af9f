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
    .description('MFU and MBU of every stage and step, with their formula and inputs')
    .argument('[session]', 'id or its unique beginning, name, @last, @last~1', '@last')
    .option('--model <name>', 'what ran: a preset, config.json, or a folder that holds one')
    .option('--dtype <dtype>', 'what it computed in, where the session does not tell', parseDType)
    .option('--batch-size <n>', 'sequences, where stages do not tell', wholeNumber('--batch-size', 1, 8))
    .option('--input-len <n>', 'prompt tokens of a sequence, likewise', wholeNumber('--input-len', 1, 128))
    .option('--explain', 'the formulas with every input and where it comes from')
    .option('--json', 'print one inferscope/utilization document')
    .addHelpText(
      'after',
      examples(
        ['inferscope session utilization llm-b1 --explain', 'how each figure comes about'],
        [
          'inferscope session utilization @last --model llama-3.1-8b --batch-size 1',
          'of a capture that names neither model nor batch',
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
