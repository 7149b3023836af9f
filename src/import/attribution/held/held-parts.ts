import type { HeldColumns } from '../../../model/workbench.js';
import { copyColumns, exclusiveColumns, kernelColumns, launchColumns } from './activity-columns.js';
import { apiCallColumns, callStageColumns } from './api-call-columns.js';
import { gapColumns } from './gap-columns.js';
import { stageColumns } from './stage-columns.js';

/** The inputs of a held capture's tables, on this thread and on the threads that encode them. */
export const heldParts = {
  apiCalls: apiCallColumns,
  callStages: callStageColumns,
  kernels: kernelColumns,
  copies: copyColumns,
  launches: launchColumns,
  exclusive: exclusiveColumns,
  gaps: gapColumns,
  stages: stageColumns,
} satisfies Record<string, (input: never) => HeldColumns>;
