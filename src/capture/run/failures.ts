import { InferscopeError } from '../../model/errors.js';
import { containerFailures } from './container-failures.js';
import { modelFailures } from './model-failures.js';
import { countersForbidden, profilerFailures } from './profiler-failures.js';
import { removeProfilerMessages } from './profiler-messages.js';
import { programFailures } from './program-failures.js';
import type { EndedRun, FailurePattern } from './failure-pattern.js';

/** The first match wins: specific ones come before generic ones. */
export const failurePatterns: FailurePattern[] = [
  countersForbidden,
  ...modelFailures,
  ...containerFailures,
  ...programFailures,
  ...profilerFailures,
];

/**
 * The error of an execution that failed; null if it succeeded. An unrecognized failure is E_WORKLOAD_FAILED with the last line of its
 * output.
 */
export function recognizeFailure(ended: EndedRun): InferscopeError | null {
  const failed =
    ended.exit_code !== 0 || ended.signal !== null || ended.startError !== null || ended.timedOut;
  for (const { anyExit, matches, explain } of failurePatterns) {
    if (!failed && !anyExit) continue;
    const match = matches(ended);
    if (!match) continue;
    const { code, parts } = explain(ended, typeof match === 'boolean' ? null : match);
    return new InferscopeError(code, parts);
  }
  return failed ? unrecognizedFailure(ended) : null;
}

function unrecognizedFailure(ended: EndedRun): InferscopeError {
  const how = ended.startError
    ? `could not be started (${ended.startError})`
    : ended.signal
      ? `was killed by ${ended.signal}`
      : `exited with code ${ended.exit_code}`;
  const words = removeProfilerMessages(ended.tool?.name ?? null, ended.output);
  const lastLine = words.trimEnd().split('\n').at(-1)?.trim() ?? '';
  return new InferscopeError('E_WORKLOAD_FAILED', {
    what: `${ended.command[0]} ${how}`,
    why: lastLine === '' ? 'It printed nothing.' : `Last output: ${lastLine.slice(0, 300)}`,
    fix: lastLine === '' ? 'Run it by itself to see why.' : `Full output: ${ended.log}`,
  });
}
