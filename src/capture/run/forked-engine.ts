import { openSync, readSync, closeSync } from 'node:fs';

/** Imports are at the start of a program. */
const maxReadBytes = 256 * 1024;

/**
 * Whether a program may compute in a forked process: vLLM forks its engine core. Judged by the words of the command and the
 * imports of a Python script in it.
 */
export function mayForkEngine(command: readonly string[]): boolean {
  return command.some((word) => /\bvllm\b/i.test(word) || (word.endsWith('.py') && importsVllm(word)));
}

function importsVllm(script: string): boolean {
  try {
    const file = openSync(script, 'r');
    try {
      const bytes = Buffer.alloc(maxReadBytes);
      const text = bytes.toString('utf8', 0, readSync(file, bytes, 0, maxReadBytes, 0));
      return /^\s*(?:import|from)\s+vllm\b/m.test(text);
    } finally {
      closeSync(file);
    }
  } catch {
    return false;
  }
}
