import type { WaterfallKind } from '../../model/documents/explain.js';
import type { PhaseClock } from '../trace/windows.js';

/** Stages of one kind or name that share a waterfall. */
export interface StageGroup {
  /** Unique among the groups: the kind, with the name for ranges named by the program. */
  key: string;
  kind: WaterfallKind;
  name: string | null;
  /**
   * steps: windows of phases, which do not overlap. request: several steps and the time between them. inner: ranges
   * inside or around steps.
   */
  level: 'steps' | 'request' | 'inner';
  clock: PhaseClock['clock'];
  /** Why the stage is timed on this clock. */
  clockWhy: string;
}
