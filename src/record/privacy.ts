import process from 'node:process';
import { redactCommand, redactText, secretsOfCommand, secretsOfEnvironment } from '../model/redaction.js';

/** This command, and what must not be written of it. */
export interface Privacy {
  /** Values that must not be written: of the environment's variables and of this command's options. */
  secrets: readonly string[];
  /** This command as it was typed, without its secrets. */
  command: string[];
  redact(text: string): string;
}

export function privacyOfCommand(): Privacy {
  const words = process.argv.slice(2);
  const secrets = [...secretsOfEnvironment(process.env), ...secretsOfCommand(words)];
  return {
    secrets,
    command: redactCommand(['inferscope', ...words], secrets),
    redact: (text) => redactText(text, secrets),
  };
}
