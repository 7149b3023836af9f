import type { Command } from 'commander';
import { type ContextOptions, defineContextOptions, saveContext, readContext } from './context-options.js';
import { examples } from './examples.js';
import { print, printDocument, terminalWidth } from './output.js';
import { selectorHelp } from './session-command.js';

interface UtilizationCommandOptions extends ContextOptions {
  explain?: boolean;
  json?: boolean;
}

/** Adds `session utilization` to the command `session`. */
export function defineUtilization(command: Command): void {
  const utilization = command
    .command('utilization')
    .description('show MFU and MBU per stage and step, with formula and inputs')
    .argument('[session]', selectorHelp, '@last');
  defineContextOptions(utilization)
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
      await saveContext(selector, await readContext(options));
      const [{ analyzeUtilization }, { openSession }, { withRows }] = await Promise.all([
        import('../facts/utilization/utilization.js'),
        import('../session/open.js'),
        import('../session/select.js'),
      ]);
      const session = await openSession(selector, undefined, withRows('stages', 'stages'));
      const analyzed = await analyzeUtilization(session);
      if (options.json) {
        printDocument(analyzed);
        return;
      }
      const [{ utilizationView }, { terminalView }] = await Promise.all([
        import('../views/utilization.js'),
        import('../render/terminal/view.js'),
      ]);
      print(terminalView(utilizationView(analyzed, options.explain === true), { width: terminalWidth() }));
    });
}
