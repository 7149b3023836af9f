import type { InMemoryColumns } from '../../../model/workbench.js';
import { copyColumns, exclusiveColumns, kernelColumns, launchColumns } from './activity-columns.js';
import { apiCallColumns, callStageColumns } from './api-call-columns.js';
import { gapColumns } from './gap-columns.js';
import { stageColumns } from './stage-columns.js';

/** Makers of the columns of an in-memory capture's tables, on this thread and on the threads that encode them. */
export const columnParts = {
  apiCalls: apiCallColumns,
  callStages: callStageColumns,
  kernels: kernelColumns,
  copies: copyColumns,
  launches: launchColumns,
  exclusive: exclusiveColumns,
  gaps: gapColumns,
  stages: stageColumns,
} satisfies Record<string, (input: never) => InMemoryColumns>;
