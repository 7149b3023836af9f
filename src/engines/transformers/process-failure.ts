import { readFile } from 'node:fs/promises';
import { exitCodeOf, InferscopeError, type ErrorCode } from '../../model/errors.js';
import { exitText } from '../../vocabulary/process-exit.js';

/** How an engine's process in Python ended. */
export interface ProcessEnd {
  command: string;
  exitCode: number | null;
  signal: string | null;
  /** ENOENT, EACCES, …: it could not be started. */
  startError: string | null;
  /** inferscope asked it to stop. */
  stopping: boolean;
  /** The end of its stderr. */
  words: string;
}

/**
 * Why a launch failed; null if it did not.
 * @param errorLine the recorded `error` line, if any
 */
export function processFailure(
  end: ProcessEnd,
  errorLine: { code: string; text: string } | null,
): InferscopeError | null {
  const { command, exitCode, signal, startError, stopping } = end;
  if (startError !== null) {
    return new InferscopeError('E_ENGINE_MISSING', {
      what: `${command} could not be started (${startError})`,
      why: 'It responded before the benchmark, but not when the engine was started.',
      fix: 'Type: inferscope doctor – or name another Python with --python PATH.',
    });
  }
  if (exitCode === 0) return null;
  if (errorLine) return fromErrorLine(errorLine);
  if (stopping) {
    return new InferscopeError('E_INTERRUPTED', {
      what: 'the engine was stopped in the middle of its work',
      why: `Its process ${exitText(signal, exitCode)}; what it recorded before is kept.`,
      fix: 'Run it again to measure the rest.',
    });
  }
  if (signal === 'SIGKILL' || exitCode === 137) {
    return new InferscopeError('E_OUT_OF_MEMORY', {
      what: "the engine's process was killed (SIGKILL)",
      why: 'The kernel does that when main memory runs out (dmesg shows "Out of memory"), or a job scheduler.',
      fix: 'Use a smaller model, --batch-size or --dtype, or raise the memory limit of the job or container.',
    });
  }
  return new InferscopeError('E_WORKLOAD_FAILED', {
    what: `the engine's process ${exitText(signal, exitCode)}`,
    why: lastLines(end.words) || 'It exited without output.',
    fix: 'Its whole output is the log of the launch, among the artifacts of the session.',
  });
}

/** The text is what, why and fix, one line each (ModelError of inferscope_decoder.py). */
export function fromErrorLine({ code, text }: { code: string; text: string }): InferscopeError {
  const [what, why, ...fix] = text.split('\n').map((line) => line.trim());
  return new InferscopeError(code in exitCodeOf ? (code as ErrorCode) : 'E_WORKLOAD_FAILED', {
    what: what || 'the engine failed',
    why: why || 'It did not say why.',
    fix: fix.join('\n') || 'Its whole output is the log of the launch.',
  });
}

/**
 * The last `error` line of process `pid` in a record. With `any` of several ranks the first, because the others fail as
 * a consequence. Null without one.
 */
export async function recordedError(
  recordPath: string,
  pid: number | 'any' | null,
): Promise<{ code: string; text: string } | null> {
  const text = await readFile(recordPath, 'utf8').catch(() => '');
  const lines = text.split('\n');
  for (const line of pid === 'any' ? lines : lines.reverse()) {
    if (!line.includes('"type": "error"')) continue;
    try {
      const errorLine = JSON.parse(line) as Record<string, unknown>;
      if (pid === 'any' || errorLine['pid'] === pid)
        return { code: String(errorLine['code']), text: String(errorLine['text']) };
    } catch {
      // The last line of a killed process may be truncated.
    }
  }
  return null;
}

function lastLines(words: string): string {
  return words.trim().split('\n').slice(-3).join('\n');
}
