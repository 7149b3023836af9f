import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import type { Document } from '../../model/document.js';
import {
  memoryFigures,
  memoryProfileSchema,
  type MemoryProfile,
} from '../../model/documents/memory-profile.js';
import type { SweepFailure, SweepRun } from '../../model/documents/sweep.js';
import { exitCodeOf } from '../../model/errors.js';
import { figuresOfDocument } from '../../model/published.js';
import { infrastructureFault } from '../memory/infrastructure-faults.js';
import type { RunEnd } from './execute-run.js';
import { formatSetting } from '../../vocabulary/format.js';

export type RunOutcome = Pick<SweepRun, 'outcome' | 'failure' | 'session_id' | 'figures' | 'exit_code'> & {
  issues: SweepRun['issues'];
};

/**
 * Outcome of a run, from its exit, the document on its stdout and its profile.
 * @param profilePath where a memory run writes its profile; null for other commands
 * @param profile content of that file
 * @param stopped whether the sweep itself was interrupted
 */
export function readOutcome(
  end: RunEnd,
  {
    profilePath,
    profile,
    timeoutMs,
    stopped,
  }: {
    profilePath: string | null;
    profile: MemoryProfile | null;
    timeoutMs: number | null;
    stopped: boolean;
  },
): RunOutcome {
  const printed = documentOf(readText(end.stdoutPath));
  const base = {
    exit_code: end.exit_code,
    issues: printed && !isError(printed) ? printed.issues.filter(({ severity }) => severity !== 'info') : [],
    session_id: printed ? sessionOf(printed) : null,
    figures: printed ? figuresOfDocument(printed) : [],
  };
  if (profile) {
    base.figures = memoryFigures(profile);
    base.session_id = profile.metadata.session_id;
    base.issues = profile.metadata.issues.map((issue) => ({ severity: 'warning', ...issue }));
  }
  const isComplete = profilePath === null || profile?.metadata.status === 'measured';
  if (end.exit_code === 0 && isComplete) return { ...base, outcome: 'measured', failure: null };
  const isSaved = profile !== null;
  if (stopped && end.exit_code === exitCodeOf.E_INTERRUPTED)
    return { ...base, outcome: 'interrupted', failure: null };
  if (end.timedOut)
    return {
      ...base,
      outcome: 'timed_out',
      failure: timeout(timeoutMs ?? 0, isSaved || base.session_id !== null),
    };
  if (stopped) return { ...base, outcome: 'interrupted', failure: null };
  const failure = end.lost ?? failureOf(end, printed, profilePath, profile);
  return { ...base, outcome: isSaved ? 'partial' : 'failed', failure };
}

/** A session without a summary (a program without a profiler) is itself the document. */
function sessionOf({ data }: Document<unknown>): string | null {
  const { session, manifest } = data as Record<'session' | 'manifest', { id?: string | null } | undefined>;
  return session?.id ?? manifest?.id ?? null;
}

const isError = (document: Document<unknown>): boolean => document.schema.startsWith('inferscope/error/');

function timeout(ms: number, isSaved: boolean): SweepFailure {
  return {
    code: 'E_TIMEOUT',
    what: `it took longer than ${formatSetting(ms / 1000, 's')}`,
    why: isSaved
      ? 'It was stopped; its measurements were saved.'
      : 'It was stopped before it had saved measurements.',
    fix: 'Allow more time (--timeout 2h), or use shorter lengths. A first download of weights counts as well.',
    infrastructure: false,
  };
}

function failureOf(
  end: RunEnd,
  printed: Document<unknown> | null,
  profilePath: string | null,
  profile: MemoryProfile | null,
): SweepFailure {
  const words = `${end.stdoutTail}\n${end.stderrTail}`;
  const reported =
    printed && isError(printed) ? (printed.data as Omit<SweepFailure, 'infrastructure'>) : null;
  const failure = reported ?? parsePrintedError(end.stderrTail);
  if (failure) {
    const { code, what, why, fix } = failure;
    return { code, what, why, fix, infrastructure: infrastructureFault(code, words) !== null };
  }
  const [issue] = profile?.metadata.issues ?? [];
  const how = end.signal
    ? `killed by ${end.signal}${end.signal === 'SIGKILL' ? ', as the kernel does when memory runs out' : ''}`
    : end.startError
      ? `could not be started (${end.startError})`
      : end.exit_code === 0
        ? profile
          ? 'stopped early'
          : `wrote no profile to ${profilePath}`
        : `exited with code ${end.exit_code}`;
  const lastLine = words.trim().split('\n').at(-1)?.trim() ?? '';
  return {
    code: 'E_WORKLOAD_FAILED',
    what: `the run ${how}`,
    why: issue?.text ?? (lastLine === '' ? 'It printed nothing.' : `Last output: ${lastLine.slice(0, 300)}`),
    fix: `Full output: ${basename(end.stderrPath)}`,
    infrastructure: infrastructureFault(null, words) !== null,
  };
}

/** `error: what (E_CODE)` and the indented lines after it, the format of every inferscope error. */
function parsePrintedError(text: string): Omit<SweepFailure, 'infrastructure'> | null {
  const lastError = [...text.matchAll(/^error: (.*) \((E_[A-Z_]+)\)\n((?: {2}.*(?:\n|$))*)/gm)].at(-1);
  if (!lastError) return null;
  const [, what = '', code = '', rest = ''] = lastError;
  const lines = rest
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean);
  return { code, what, why: lines.slice(0, -1).join(' '), fix: lines.at(-1) ?? '' };
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** The document a command printed with --json; a program under `run` may have printed before it. */
function documentOf(text: string): Document<unknown> | null {
  for (let index = text.indexOf('{'); index >= 0; index = text.indexOf('\n{', index) + 1 || -1) {
    try {
      const parsed = JSON.parse(text.slice(index)) as Partial<Document<unknown>>;
      if (typeof parsed.schema === 'string' && parsed.data && Array.isArray(parsed.issues))
        return parsed as Document<unknown>;
      return null;
    } catch {
      // Not the last output on stdout.
    }
  }
  return null;
}

/** A complete profile, or null. */
export function readProfile(path: string): MemoryProfile | null {
  try {
    return memoryProfileSchema.safeParse(JSON.parse(readFileSync(path, 'utf8'))).data ?? null;
  } catch {
    return null;
  }
}
