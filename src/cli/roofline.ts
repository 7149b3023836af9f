import { Option, type Command } from 'commander';
import { collect } from './command-line.js';
import { examples } from './examples.js';
import { parseThreadCount } from './numbers.js';
import type { RooflineCommandOptions } from './roofline-session.js';

export function define(command: Command): void {
  command
    .addOption(
      new Option(
        '--device <device>',
        'device to measure (default: GPUs if PyTorch sees one, else the CPU)',
      ).choices(['cuda', 'cpu']),
    )
    .option('--python <path>', 'Python with torch, for GPUs (default: INFERSCOPE_PYTHON, else from PATH)')
    .option(
      '--threads <n>',
      'CPU threads for compute; implies --device cpu (default: cores − 1)',
      parseThreadCount,
    )
    .option('--fresh', 'measure again even if a roofline is cached')
    .option(
      '--record',
      'measure the GPUs again and save every case in a session (implied by --name and --tag)',
    )
    .option('--name <name>', 'name the session')
    .addOption(new Option('--tag <tag>', 'tag the session').argParser(collect).default([], 'none'))
    .option('--json', 'print one inferscope/roofline document')
    .option('--quiet', 'no progress on stderr')
    .addHelpText(
      'after',
      examples(
        ['inferscope roofline', "show this machine's roofs, measured once and cached"],
        [
          'inferscope roofline --fresh --threads 4 --json',
          'measure the CPU again with four threads, print JSON',
        ],
      ),
    )
    .action(async (options: RooflineCommandOptions) => {
      const { runRoofline } = await import('./roofline-run.js');
      await runRoofline(options);
    });
}
