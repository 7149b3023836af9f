import process from 'node:process';
import { safeJson, safeText } from '../render/safe-text.js';
import { colour, talkColour } from '../render/terminal/colour.js';
import { InferscopeError, messageOf } from '../model/errors.js';
import type { Document } from '../model/document.js';
import { redactText, secretsOfCommand, secretsOfEnvironment } from '../model/redaction.js';
import { toolVersion } from '../model/version.js';

/** stdout is data: one JSON document, or the text the user asked for. */
export function printDocument(document: Document<unknown>): void {
  printJson(document);
}

export function printJson(value: unknown): void {
  printData(`${safeJson(JSON.stringify(value, null, 2))}\n`);
}

/** What another program reads, byte for byte; on a terminal as text, in which nothing is ours to colour. */
export function printData(text: string): void {
  process.stdout.write(process.stdout.isTTY ? safeText(text) : text);
}

export function print(text: string): void {
  const safe = safeText(text, { colours: colour.isColorSupported });
  process.stdout.write(safe.endsWith('\n') ? safe : `${safe}\n`);
}

/** stderr is talk: progress, notes, warnings. */
export function talk(text: string): void {
  const safe = safeText(text, { colours: talkColour.isColorSupported });
  process.stderr.write(safe.endsWith('\n') ? safe : `${safe}\n`);
}

export function warn(text: string): void {
  talk(`${talkColour.yellow('warning:')} ${text}`);
}

/** Narrower than this nothing is laid out: a terminal folds it. */
const leastWidth = 40;

/** Columns: what COLUMNS says, else the terminal that the stream goes to; 80 when it is a file or a pipe. */
export function terminalWidth(stream: NodeJS.WriteStream = process.stdout): number {
  const said = Number(process.env['COLUMNS']);
  return Math.max(leastWidth, Number.isSafeInteger(said) && said > 0 ? said : stream.columns || 80);
}

/**
 * Shows a failure and returns the exit code for it. With `json`, stdout gets an `inferscope/error` document,
 * so that a program reading stdout never has to parse stderr.
 */
export function reportError(error: unknown, json: boolean): number {
  const known = error instanceof InferscopeError ? error : null;
  const code = known?.code ?? 'E_INTERNAL';
  const secrets = [...secretsOfEnvironment(process.env), ...secretsOfCommand(process.argv)];
  const clean = (text: string) => safeText(redactText(text, secrets));
  const { what, why, fix } = known?.parts ?? {
    what: `inferscope failed: ${messageOf(error)}`,
    why: 'This is a fault of inferscope, not of your input.',
    fix: 'Please report it with the stack above.',
  };
  const parts = { what: clean(what).replaceAll('\n', ' '), why: clean(why), fix: clean(fix) };
  if (!known && error instanceof Error && error.stack) talk(clean(error.stack));
  talk(`${talkColour.red('error:')} ${parts.what} (${code})`);
  for (const line of `${parts.why}\n${parts.fix}`.split('\n')) talk(`  ${line}`);
  const exitCode = known?.exitCode ?? 70;
  if (json) {
    printJson({
      schema: 'inferscope/error/1.0',
      tool_version: toolVersion,
      data: { code, exit_code: exitCode, ...parts },
      issues: [],
    });
  }
  return exitCode;
}
