import type { SweepFailure, SweepRun } from '../../model/documents/sweep.js';
import type { ErrorCode } from '../../model/errors.js';
import { ownWords, valueOf } from './plan-grid.js';

type Configured = Pick<SweepRun, 'arguments' | 'parameters'>;

/** Parameters that never select the engine, the tool or the place of a run. */
const sizes: ReadonlySet<string> = new Set([
  'batch_size',
  'input_length',
  'output_length',
  'max_model_len',
  'batch-size',
  'input-len',
  'output-len',
  'max-model-len',
]);

const always = (): boolean => true;
const inContainer = (other: Configured): boolean =>
  valueOf(ownWords(other.arguments), '--container') !== null;

/** Whether two runs differ only in parameters that do not select their environment. */
function differsInSizes(other: Configured, failed: Configured): boolean {
  const names = new Set([...Object.keys(other.parameters), ...Object.keys(failed.parameters)]);
  return [...names].every((name) => sizes.has(name) || other.parameters[name] === failed.parameters[name]);
}

/** Codes of environment failures, and the other runs that they would affect. */
const blockedRuns: Partial<Record<ErrorCode, (other: Configured, failed: Configured) => boolean>> = {
  E_HOME_UNWRITABLE: always,
  E_DOCKER: inContainer,
  E_ENGINE_MISSING: differsInSizes,
  E_TOOL_MISSING: differsInSizes,
  E_TOOL_VERSION: differsInSizes,
  E_NCU_PERMISSION: differsInSizes,
};

/** Reasons not to start runs of a sweep. */
export interface Obstacle {
  failure: SweepFailure;
  blocks: (other: Configured) => boolean;
}

/** Too little disk space prevents all runs. */
export const diskObstacle = (failure: SweepFailure): Obstacle => ({ failure, blocks: always });

/** The obstacle after a run that failed because of its environment; null if only its own configuration is known to fail. */
export function obstacleOf(run: Configured & Pick<SweepRun, 'failure'>): Obstacle | null {
  const { failure } = run;
  const isBlocked = failure === null ? undefined : blockedRuns[failure.code as ErrorCode];
  return failure === null || isBlocked === undefined
    ? null
    : { failure, blocks: (other) => isBlocked(other, run) };
}
