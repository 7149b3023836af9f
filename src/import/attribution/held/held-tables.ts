import type { TableName } from '../../../model/tables.js';
import type { HeldColumns } from '../../../model/workbench.js';
import { copyColumns, kernelColumns } from './activity-columns.js';
import { apiCallColumns } from './api-call-columns.js';
import { gapColumns } from './gap-columns.js';
import { stageColumns } from './stage-columns.js';

/** What the tables of a held capture are made of, here and on the threads that encode them. */
export const heldTables = {
  api_calls: apiCallColumns,
  kernels: kernelColumns,
  copies: copyColumns,
  gaps: gapColumns,
  stages: stageColumns,
  ops: (): HeldColumns => ({}),
} satisfies Partial<Record<TableName, (input: never) => HeldColumns>>;
