import type { WaterfallKind } from '../../model/documents/explain.js';
import type { PhaseClock } from '../trace/windows.js';

/** Stages of one kind, or of one name, that have a waterfall together. */
export interface StageGroup {
  /** Unique among the groups: the kind, for ranges of the program's own with their name. */
  key: string;
  kind: WaterfallKind;
  name: string | null;
  /**
   * steps: windows of phases, which do not overlap. request: several of them and what lies between. inner: ranges that
   * lie inside or around them.
   */
  level: 'steps' | 'request' | 'inner';
  clock: PhaseClock['clock'];
  why: string;
}
