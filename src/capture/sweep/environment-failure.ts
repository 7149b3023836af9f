import type { SweepFailure, SweepRun } from '../../model/documents/sweep.js';
import type { ErrorCode } from '../../model/errors.js';
import { ownWords, valueOf } from './plan-grid.js';

type RunConfiguration = Pick<SweepRun, 'arguments' | 'parameters'>;

/** Parameters that never select the engine, the tool or the place of a run. */
const sizeParameters: ReadonlySet<string> = new Set([
  'batch_size',
  'input_length',
  'output_length',
  'input_len',
  'output_len',
  'max_model_len',
]);

const blocksAll = (): boolean => true;
const runsInContainer = (other: RunConfiguration): boolean =>
  valueOf(ownWords(other.arguments), '--container') !== null;

/** Whether two runs differ only in parameters that do not select their environment. */
function differsInSizes(other: RunConfiguration, failed: RunConfiguration): boolean {
  const names = new Set([...Object.keys(other.parameters), ...Object.keys(failed.parameters)]);
  return [...names].every(
    (name) => sizeParameters.has(name) || other.parameters[name] === failed.parameters[name],
  );
}

/** Codes of environment failures, and the other runs that they would affect. */
const blockedRuns: Partial<
  Record<ErrorCode, (other: RunConfiguration, failed: RunConfiguration) => boolean>
> = {
  E_HOME_UNWRITABLE: blocksAll,
  E_DOCKER: runsInContainer,
  E_ENGINE_MISSING: differsInSizes,
  E_TOOL_MISSING: differsInSizes,
  E_TOOL_VERSION: differsInSizes,
  E_NCU_PERMISSION: differsInSizes,
};

/** Reasons not to start runs of a sweep. */
export interface Obstacle {
  failure: SweepFailure;
  blocks: (other: RunConfiguration) => boolean;
}

/** Too little disk space prevents all runs. */
export const diskObstacle = (failure: SweepFailure): Obstacle => ({ failure, blocks: blocksAll });

/** The obstacle after a run that failed because of its environment; null if only its own configuration is known to fail. */
export function obstacleOf(run: RunConfiguration & Pick<SweepRun, 'failure'>): Obstacle | null {
  const { failure } = run;
  const isBlocked = failure === null ? undefined : blockedRuns[failure.code as ErrorCode];
  return failure === null || isBlocked === undefined
    ? null
    : { failure, blocks: (other) => isBlocked(other, run) };
}
