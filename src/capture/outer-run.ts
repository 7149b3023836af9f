import { appendFileSync, closeSync, existsSync, fstatSync, openSync, readSync } from 'node:fs';
import process from 'node:process';
import { recordVariable } from '../model/outer-run.js';

/**
 * Appends engine records to the record of the surrounding run (`run -- inferscope bench …`), so
 * that its stages have their sizes there too. Whole lines only; does nothing outside such a run.
 * @param from bytes already passed on
 * @returns bytes passed on so far
 */
export function passOnRecord(path: string, from = 0, env: NodeJS.ProcessEnv = process.env): number {
  const outer = env[recordVariable];
  if (!outer || outer === path || !existsSync(path)) return from;
  const file = openSync(path, 'r');
  try {
    const bytes = Buffer.alloc(Math.max(0, fstatSync(file).size - from));
    const read = readSync(file, bytes, 0, bytes.length, from);
    const lines = bytes.subarray(0, bytes.subarray(0, read).lastIndexOf(10) + 1);
    if (lines.length > 0) appendFileSync(outer, lines);
    return from + lines.length;
  } finally {
    closeSync(file);
  }
}
