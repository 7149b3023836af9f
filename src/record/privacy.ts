import process from 'node:process';
import { launcherWords } from '../model/launcher-words.js';
import { redactCommand, redactText, secretsOfCommand, secretsOfEnvironment } from '../model/redaction.js';

/** This command, and what must not be written of it. */
export interface Privacy {
  /** Values that must not be written: of the environment's variables and of this command's options. */
  secrets: readonly string[];
  /** This command as it was typed, below the launcher of its job, without its secrets. */
  command: string[];
  redact(text: string): string;
}

export function privacyOfCommand(): Privacy {
  const words = process.argv.slice(2);
  const launcher = words[0] === 'run' ? launcherWords(words) : [];
  const secrets = [...secretsOfEnvironment(process.env), ...secretsOfCommand([...launcher, ...words])];
  return {
    secrets,
    command: redactCommand([...launcher, 'inferscope', ...words], secrets),
    redact: (text) => redactText(text, secrets),
  };
}
