import process from 'node:process';
import { launcherWords } from '../model/launcher-words.js';
import { redactCommand, redactText, secretsOfCommand, secretsOfEnvironment } from '../model/redaction.js';

/** The secrets of this command, and their redaction. */
export interface Privacy {
  /** Values that must not be saved: from environment variables and options of this command. */
  secrets: readonly string[];
  /** This command as typed, without secrets; `run` with the words that started the ranks of its job. */
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
