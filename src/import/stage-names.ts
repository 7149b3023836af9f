import type { StageKind } from '../model/record.js';

/** What the name of a range says about the stage it marks. Unknown parts are null. */
export interface StageName {
  kind: StageKind;
  iteration: number | null;
  step_index: number | null;
  batch_size: number | null;
  new_tokens: number | null;
  context_tokens_sum: number | null;
  warmup: boolean;
}

/** One line of the table that turns names of ranges into stages; people add theirs in inferscope.yaml (`stages:`). */
export interface StageNameRule {
  /** Matched against the whole name, case-insensitively; named groups fill the fields of the same name. */
  pattern: RegExp;
  kind: StageKind;
  /** Who marks so, and a name as they write it. */
  source: string;
  sample: string;
}
