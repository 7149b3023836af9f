import type { SweepFailure, SweepRun } from '../../model/documents/sweep.js';
import type { ErrorCode } from '../../model/errors.js';
import { ownWords, valueOf } from './plan-grid.js';

type Configured = Pick<SweepRun, 'arguments' | 'parameters'>;

/** Parameters that never choose the engine, the tool or the place of a run. */
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

/** The runs of a sweep have all in common but their parameters. */
function differsInSizes(other: Configured, failed: Configured): boolean {
  const names = new Set([...Object.keys(other.parameters), ...Object.keys(failed.parameters)]);
  return [...names].every((name) => sizes.has(name) || other.parameters[name] === failed.parameters[name]);
}

/** Codes of what surrounds the runs, and which other runs would meet the same. */
const meets: Partial<Record<ErrorCode, (other: Configured, failed: Configured) => boolean>> = {
  E_HOME_UNWRITABLE: always,
  E_DOCKER: inContainer,
  E_ENGINE_MISSING: differsInSizes,
  E_TOOL_MISSING: differsInSizes,
  E_TOOL_VERSION: differsInSizes,
  E_NCU_PERMISSION: differsInSizes,
};

/** What keeps runs of a sweep from being begun. */
export interface Obstacle {
  failure: SweepFailure;
  blocks: (other: Configured) => boolean;
}

/** Too little disk keeps every run from being begun. */
export const diskObstacle = (failure: SweepFailure): Obstacle => ({ failure, blocks: always });

/** Of a run that failed by its environment; null where only its own configuration is known to fail. */
export function obstacleOf(run: Configured & Pick<SweepRun, 'failure'>): Obstacle | null {
  const { failure } = run;
  const meet = failure === null ? undefined : meets[failure.code as ErrorCode];
  return failure === null || meet === undefined ? null : { failure, blocks: (other) => meet(other, run) };
}
