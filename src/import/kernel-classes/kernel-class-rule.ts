import type { OpClass } from '../../model/classes.js';

/** Ordered: the first rule whose pattern is found in the (demangled) name decides. */
export interface KernelClassRule {
  pattern: RegExp;
  class: OpClass;
  /** Library or engine it comes from. */
  family: string;
  /** A name as a profiler prints it, which this rule and none before it takes. */
  sample: string;
}
