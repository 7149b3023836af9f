import { benchParts } from '../../model/bench.js';
import { InferscopeError } from '../../model/errors.js';
import { checkGrid } from '../../model/grid.js';
import { variedOf, type PlannedRun, type SweepPlan } from './plan.js';

export interface GridAxis {
  /** As typed: batch-size. */
  name: string;
  values: readonly (string | number | boolean)[];
}

/** Commands that write several files into a folder: each run gets its own folder. */
const writesFolder = (command: readonly string[]): boolean =>
  command[0] === 'kernels' || (command[0] === 'bench' && [...benchParts, 'suite'].includes(command[1] ?? ''));

/**
 * Expands a command over a grid, the last axis changing fastest. `{name}` in the command is replaced by the axis' value; other axes are
 * added as `--name value`, before a program's own command line after `--`.
 * @throws E_USAGE for axes that contradict the command, and for too many runs
 */
export function planGrid(command: readonly string[], axes: readonly GridAxis[]): SweepPlan {
  const words = command[0] === 'inferscope' ? command.slice(1) : [...command];
  refuseContradictions(words, axes);
  checkGrid(Object.fromEntries(axes.map(({ name, values }) => [name, values.length])), 'runs');
  const points = axes.reduce<[string, string | number | boolean][][]>(
    (before, { name, values }) =>
      before.flatMap((point) => values.map((value) => [...point, [name, value] as [string, typeof value]])),
    [[]],
  );
  const runs = points.map((point): PlannedRun => {
    const flags = point.flatMap(([name, value]) =>
      words.some((word) => word.includes(`{${name}}`)) ? [] : flagWords(name, value),
    );
    const filled = words.map((word) =>
      point.reduce((text, [name, value]) => text.replaceAll(`{${name}}`, String(value)), word),
    );
    const json = ownWords(words).includes('--json') ? [] : ['--json'];
    const index = filled.indexOf('--');
    const [commandWords, program] =
      index === -1 ? [filled, []] : [filled.slice(0, index), filled.slice(index)];
    return {
      label: point.map(([name, value]) => `${name} ${value}`).join(', ') || words.join(' '),
      model: valueOf(ownWords(filled), '--model') ?? valueOf(flags, '--model'),
      // If the command's own --output was typed, it is kept.
      arguments: [...commandWords, ...flags, ...json, ...program],
      parameters: Object.fromEntries(
        point.map(([name, value]) => [
          name.replaceAll('-', '_'),
          typeof value === 'boolean' ? String(value) : value,
        ]),
      ),
      writes: ownWords(words).includes('--output') ? null : outputKind(words),
    };
  });
  return { kind: 'grid', runs, varied: variedOf(runs) };
}

function outputKind(words: readonly string[]): PlannedRun['writes'] {
  if (words[0] === 'memory' && !['compare', 'validate'].includes(words[1] ?? '')) return 'profile';
  return writesFolder(words) ? 'folder' : null;
}

/** Value of a flag in a command, as `--flag value` or `--flag=value`; null without the flag. */
export function valueOf(words: readonly string[], flag: string): string | null {
  const index = words.findIndex((word) => word === flag || word.startsWith(`${flag}=`));
  const word = words[index];
  if (word === undefined) return null;
  return word === flag ? (words[index + 1] ?? null) : word.slice(flag.length + 1);
}

/** inferscope's own arguments, without a program after `--`. */
export const ownWords = (words: readonly string[]): readonly string[] =>
  words.includes('--') ? words.slice(0, words.indexOf('--')) : words;

/** `--quick` for true, nothing for false. */
const flagWords = (name: string, value: string | number | boolean): string[] =>
  value === false ? [] : value === true ? [`--${name}`] : [`--${name}`, String(value)];

function refuseContradictions(words: readonly string[], axes: readonly GridAxis[]): void {
  for (const [index, { name }] of axes.entries()) {
    if (axes.findIndex((axis) => axis.name === name) !== index)
      throw contradiction(
        `--grid ${name} is given twice`,
        `Write all its values at once: --grid ${name}=1,8`,
      );
    const flag = ownWords(words).find((word) => word === `--${name}` || word.startsWith(`--${name}=`));
    if (flag !== undefined && !words.some((word) => word.includes(`{${name}}`)))
      throw contradiction(
        `${flag} is in the command and in the grid`,
        `Remove it from the command, or write --${name} {${name}} there.`,
      );
  }
}

function contradiction(what: string, fix: string): InferscopeError {
  return new InferscopeError('E_USAGE', { what, why: 'Each run has one value of each axis.', fix });
}

/** `batch-size=1,8,32`; values that are numbers stay numbers. @throws E_USAGE */
export function parseAxis(text: string): GridAxis {
  const [, name, list] = /^([A-Za-z][\w-]*)=(.*)$/s.exec(text) ?? [];
  const values = (list ?? '').split(/\s*,\s*|\s+/).filter((part) => part !== '');
  if (name === undefined || values.length === 0)
    throw new InferscopeError('E_USAGE', {
      what: `--grid ${text} is invalid`,
      why: 'The format is NAME=VALUE,VALUE,….',
      fix: 'Example: --grid batch-size=1,8,32',
    });
  return {
    name,
    values: [...new Set(values)].map((value) => (/^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value)),
  };
}
