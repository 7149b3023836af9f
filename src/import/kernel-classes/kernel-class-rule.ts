import type { OpClass } from '../../model/classes.js';

/** Ordered: the first rule with a pattern found in the (demangled) name wins. */
export interface KernelClassRule {
  pattern: RegExp;
  class: OpClass;
  /** Source library or engine. */
  family: string;
  /** A name as a profiler prints it, matched by this rule and by no earlier one. */
  sample: string;
}
