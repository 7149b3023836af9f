import { Option } from 'commander';
import { findOnPath } from '../capture/doctor/find-tool.js';
import { noSbatch } from '../capture/tools/slurm.js';
import { InferscopeError } from '../model/errors.js';
import { shellWords } from '../model/shell.js';

export interface SlurmOptions {
  on: 'local' | 'slurm';
  sbatch?: string;
}

/** Where the tasks of a command run; `what` describes the tasks. */
export const onOption = (what: string): Option =>
  new Option('--on <where>', what).choices(['local', 'slurm']).default('local');

export const sbatchOption = (): Option =>
  new Option('--sbatch <options>', "with --on slurm: options of sbatch, e.g. '--partition=cpu --mem=4G'");

/** @throws E_USAGE for options of jobs that are not submitted, and for unclosed quotes; E_TOOL_MISSING without Slurm */
export function checkSlurm(
  on: SlurmOptions['on'],
  options: Readonly<Record<string, string | undefined>>,
): void {
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined) continue;
    if (on !== 'slurm')
      throw new InferscopeError('E_USAGE', {
        what: `${name} needs --on slurm`,
        why: 'It sets options of jobs that are submitted to Slurm.',
        fix: `Add --on slurm, or leave out ${name}.`,
      });
    if (shellWords(value) === null)
      throw new InferscopeError('E_USAGE', {
        what: `unclosed quote in ${name}`,
        why: `Its value is split into words as in a shell: ${value}`,
        fix: `Quote values with spaces inside it: ${name} '--partition=cpu --comment="two words"'`,
      });
  }
  if (on === 'slurm' && findOnPath('sbatch') === null) throw noSbatch();
}
