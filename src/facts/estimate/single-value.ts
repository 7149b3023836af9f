import { InferscopeError } from '../../model/errors.js';

const whyOne = {
  '--layers': 'It shows every module of one shape; without it, lists give a table.',
  '--fits': 'It compares models and dtypes at one shape; with --model, lists give a table.',
} as const;

/** The only value of a flag that takes lists otherwise. @throws E_USAGE */
export function singleValue(mode: keyof typeof whyOne, flag: string, values: readonly number[]): number {
  const [value, ...more] = values;
  if (value !== undefined && more.length === 0) return value;
  throw new InferscopeError('E_USAGE', {
    what: `${mode} takes one ${flag}, not ${values.join(', ')}`,
    why: whyOne[mode],
    fix: `Type for example: ${flag} ${value ?? 1}`,
  });
}
