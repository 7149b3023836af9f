import { type Command, Option } from 'commander';

/** Adds `--repeats <n>` as a hidden alias of `--runs <n>`. @param command has --runs */
export function aliasRepeats(command: Command): Command {
  const runs = command.options.find(({ long }) => long === '--runs')!;
  return command
    .addOption(new Option('--repeats <n>', 'the same as --runs').hideHelp())
    .on('option:repeats', (text: string) => {
      const value: unknown = runs.parseArg ? runs.parseArg(text, undefined) : text;
      command.setOptionValueWithSource('runs', value, 'cli');
    });
}
