import { Command, Option } from 'commander';
import { ownWords } from '../capture/sweep/plan-grid.js';
import type { PlannedRun } from '../capture/sweep/plan.js';
import { InferscopeError } from '../model/errors.js';
import { nearest } from '../model/nearest.js';
import type { LoadableCommand } from './completion.js';
import { aliasRepeats } from './runs-option.js';

/**
 * Checks the options of planned runs of an inferscope command, so that a misspelled axis is an error before the first run. Values
 * are not checked: a run with a value that its command refuses fails alone.
 * @throws E_USAGE
 */
export async function checkCommandOptions(
  runs: readonly PlannedRun[],
  { sweep, commands }: { sweep: Command; commands: readonly LoadableCommand[] },
): Promise<void> {
  const words = ownWords(runs[0]?.arguments ?? []);
  const entry = commands.find(({ name }) => name === words[0]);
  if (!entry) return;
  const defined = new Command(entry.name);
  (await entry.load()).define(defined);
  let command = defined;
  let path = entry.name;
  for (const word of words.slice(1)) {
    const child = command.commands.find((known) => [known.name(), known.alias()].includes(word));
    if (!child) break;
    command = child;
    path += ` ${child.name()}`;
  }
  if (command.options.some(({ long }) => long === '--runs')) aliasRepeats(command);
  const flags = command.options.flatMap(({ long, short }) =>
    [long, short].filter((flag) => flag !== undefined),
  );
  // Without their parsers.
  const parser = new Command();
  for (const option of command.options) parser.addOption(new Option(option.flags));
  const parsed = runs.map(({ arguments: all }) => parser.parseOptions([...ownWords(all)]));
  const unknown = parsed.flatMap((words) => words.unknown.filter((word) => /^--?[a-z]/i.test(word)));
  const flag = unknown.find((word) => !sweep.options.some(({ long }) => long === word)) ?? unknown[0];
  if (flag === undefined) {
    checkArguments(path, command, parsed[0]!.operands);
    return;
  }
  const suggestion = nearest(flag, flags);
  const isSweepOption = sweep.options.some(({ long }) => long === flag);
  throw new InferscopeError('E_USAGE', {
    what: `inferscope ${path} has no option ${flag}`,
    why:
      suggestion !== null
        ? `Did you mean ${suggestion}?`
        : isSweepOption
          ? `${flag} is an option of sweep.`
          : 'An axis of --grid is an option of the command after --, or {NAME} in it.',
    fix:
      isSweepOption && suggestion === null
        ? `Put it before --: inferscope sweep ${flag} … -- ${path}`
        : `See inferscope ${path} --help.`,
  });
}

/** @throws E_USAGE for more arguments than the command has */
function checkArguments(path: string, command: Command, operands: readonly string[]): void {
  const given = operands.slice(path.split(' ').length);
  const defined = command.registeredArguments;
  if (given.length <= defined.length || defined.some(({ variadic }) => variadic)) return;
  throw new InferscopeError('E_USAGE', {
    what: `inferscope ${path} has no argument for ${given[defined.length]!}`,
    why: `Usage: inferscope ${path} ${command.usage()}`,
    fix: `See inferscope ${path} --help.`,
  });
}
