import { opClasses } from '../../../model/classes.js';
import { kernelLabel, type KernelLabel } from '../../kernel-classes/classify.js';
import type { HeldEvents } from './held-events.js';

/** Of each combination of kernels: codes for the kernels' columns; NaN is null. */
export interface ShapeLabels {
  class: Float64Array;
  tile: Float64Array;
  dtype: Float64Array;
  /** 0 compute, 1 communication. */
  priority: Uint8Array;
  /** Of `tile` and `dtype`. */
  texts: string[];
}

/** Each distinct name is classified once; a whole graph has the class graph whatever its name. */
export function labelShapes({ shapes }: HeldEvents, names: readonly string[]): ShapeLabels {
  const ofName = shapes['name'] ?? new Float64Array();
  const opaque = shapes['opaque_graph'] ?? new Float64Array();
  const known = new Map<number, KernelLabel>();
  const codes = new Map<string, number>();
  const code = (text: string | null | undefined): number => {
    if (text === null || text === undefined) return Number.NaN;
    if (!codes.has(text)) codes.set(text, codes.size);
    return codes.get(text)!;
  };
  const labels = Array.from(ofName, (name) => {
    if (Number.isNaN(name)) return null;
    if (!known.has(name)) known.set(name, kernelLabel(names[name]!));
    return known.get(name)!;
  });
  const classes = labels.map((label, shape) => (opaque[shape] === 1 ? 'graph' : label?.class));
  return {
    class: Float64Array.from(classes, (one) => (one ? opClasses.indexOf(one) : Number.NaN)),
    tile: Float64Array.from(labels, (label) => code(label?.tile)),
    dtype: Float64Array.from(labels, (label) => code(label?.dtype)),
    priority: Uint8Array.from(classes, (one) => Number(one === 'communication')),
    texts: [...codes.keys()],
  };
}
