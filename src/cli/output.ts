import process from 'node:process';
import { safeJson, safeText } from '../render/safe-text.js';
import { color, stderrColor } from '../render/terminal/color.js';
import { hanging, textWidth } from '../render/terminal/text.js';
import { InferscopeError, messageOf } from '../model/errors.js';
import type { Document } from '../model/document.js';
import { asTyped } from '../model/program-name.js';
import { shellWord } from '../model/shell.js';
import { toolVersion } from '../model/version.js';
import { privacyOfCommand } from '../record/privacy.js';

/** stdout has data: one JSON document or the requested text. */
export function printDocument(document: Document<unknown>): void {
  printJson(document);
}

export function printJson(value: unknown): void {
  printData(`${safeJson(JSON.stringify(value, null, 2))}\n`);
}

/** Writes data for another program byte for byte; as uncolored text on a terminal. */
export function printData(text: string): void {
  process.stdout.write(process.stdout.isTTY ? safeText(text) : text);
}

export function print(text: string): void {
  const safe = safeText(text, { colors: color.isColorSupported });
  process.stdout.write(safe.endsWith('\n') ? safe : `${safe}\n`);
}

/** Last line of a summary: the command that opens the session's pages. @param session its name, else its id */
export const browserLine = (session: string): string =>
  asTyped(`  browser: inferscope ui ${shellWord(session)}`);

/** stderr has progress, notes and warnings. */
export function notify(text: string): void {
  const safe = safeText(text, { colors: stderrColor.isColorSupported });
  process.stderr.write(safe.endsWith('\n') ? safe : `${safe}\n`);
}

export function warn(text: string): void {
  const mark = stderrColor.yellow('warning:');
  if (!process.stderr.isTTY) return notify(`${mark} ${text}`);
  for (const line of hanging(`${mark} `, text, terminalWidth(process.stderr))) notify(line);
}

/** Minimum layout width; a narrower terminal wraps lines. */
const minWidth = 40;

/** Width: COLUMNS, else that of the stream's terminal; 80 for a file or a pipe. */
export function terminalWidth(stream: NodeJS.WriteStream = process.stdout): number {
  const columns = Number(process.env['COLUMNS']);
  return Math.max(minWidth, Number.isSafeInteger(columns) && columns > 0 ? columns : stream.columns || 80);
}

const linesOf = (text: string): string[] => text.split('\n');

/**
 * Prints a failure and returns its exit code. With `json`, stdout gets an `inferscope/error` document, so programs
 * need not parse stderr.
 */
export function reportError(error: unknown, json: boolean): number {
  const known = error instanceof InferscopeError ? error : null;
  const code = known?.code ?? 'E_INTERNAL';
  const { redact } = privacyOfCommand();
  // Commands are shown as the user starts them, and numbers can be copied.
  const clean = (text: string) =>
    safeText(asTyped(redact(text)).replaceAll(/(?<=\d)\u00a0(?=\d{3}(?!\d))/g, ''));
  const { what, why, fix } = known?.parts ?? {
    what: `inferscope failed: ${messageOf(error)}`,
    why: 'This is a bug in inferscope, not a problem with your input.',
    fix: 'Please report it with the stack trace above.',
  };
  const parts = { what: clean(what).replaceAll('\n', ' '), why: clean(why), fix: clean(fix) };
  if (!known && error instanceof Error && error.stack) notify(clean(error.stack));
  notify(`${stderrColor.red('error:')} ${parts.what} (${code})`);
  // What to type stays on one line, so that it can be copied.
  const width = process.stderr.isTTY ? terminalWidth(process.stderr) : Infinity;
  for (const line of linesOf(parts.why))
    for (const part of textWidth(line) + 2 > width ? hanging('  ', line, width) : [`  ${line}`]) notify(part);
  for (const line of linesOf(parts.fix)) notify(`  ${line}`);
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
