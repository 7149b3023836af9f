import { Option, type Command } from 'commander';
import { examples } from './examples.js';
import { threadCount } from './numbers.js';
import type { RooflineCommandOptions } from './roofline-session.js';

export function define(command: Command): void {
  const several = (word: string, before: string[]) => [...before, word];
  command
    .addOption(
      new Option(
        '--device <device>',
        'what to measure (default: the GPUs where PyTorch sees one, else the CPU)',
      ).choices(['cuda', 'cpu']),
    )
    .option('--python <path>', 'Python with torch, for GPUs (default: INFERSCOPE_PYTHON, else what PATH has)')
    .option('--threads <n>', 'CPU threads that compute; means --device cpu (default: cores − 1)', threadCount)
    .option('--fresh', 'measure again even when a cached one exists')
    .option('--record', 'measure the GPUs again and keep a session of every case; --name and --tag do too')
    .option('--name <name>', 'name the session')
    .addOption(new Option('--tag <tag>', 'tag the session').argParser(several).default([], 'none'))
    .option('--json', 'print one inferscope/roofline document')
    .option('--quiet', 'no progress on stderr')
    .addHelpText(
      'after',
      examples(
        ['inferscope roofline', "this machine's roofs, measured once and cached"],
        ['inferscope roofline --fresh --threads 4 --json', 'the CPU anew with four threads, for a program'],
      ),
    )
    .action(async (options: RooflineCommandOptions) => {
      const { runRoofline } = await import('./roofline-run.js');
      await runRoofline(options);
    });
}
