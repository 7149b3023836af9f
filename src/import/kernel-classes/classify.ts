import type { OpClass } from '../../model/classes.js';
import { engineRules } from './engine-rules.js';
import { parseGemmName } from './gemm-name.js';
import { libraryRules } from './library-rules.js';
import type { KernelClassRule } from './kernel-class-rule.js';
import { tritonClass } from './triton-rules.js';

/** Information from the name of a device kernel. */
interface KernelLabel {
  class: OpClass;
  /** MxNxK of a GEMM's tile; null if not in the name. */
  tile: string | null;
  /** Type of the inputs; null if not in the name. */
  dtype: string | null;
}

export const kernelClassRules: readonly KernelClassRule[] = [...libraryRules, ...engineRules];

/** Names are truncated to this length before matching: longer ones only repeat template arguments. */
export const matchedLetters = 1500;

/** @param name demangled if the profiler has it; `other` if no rule matches */
export function kernelLabel(name: string): KernelLabel {
  const text = name.slice(0, matchedLetters);
  const kernelClass = tritonClass(text) ?? kernelClassRules.find(({ pattern }) => pattern.test(text))?.class;
  const label = { class: kernelClass ?? ('other' as const), tile: null, dtype: null };
  return label.class === 'gemm' ? { ...label, ...parseGemmName(text) } : label;
}
