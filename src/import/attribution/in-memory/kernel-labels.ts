import { opClasses } from '../../../model/classes.js';
import { priorities } from '../device-sweep.js';
import { labelNames } from '../kernel-labels.js';
import type { InMemoryEvents } from './events.js';

/** For each combination of kernels, codes for the kernel columns; NaN is null. */
export interface ShapeLabels {
  class: Float64Array;
  tile: Float64Array;
  dtype: Float64Array;
  priority: Uint8Array;
  /** For `tile` and `dtype`. */
  texts: string[];
}

/** Same class as kernelClassSql without operators: a whole graph always has the class graph. */
export function labelShapes({ shapes }: InMemoryEvents, names: readonly string[]): ShapeLabels {
  const nameCodes = shapes['name'] ?? new Float64Array();
  const opaque = shapes['opaque_graph'] ?? new Float64Array();
  const codes = [...new Set(nameCodes)].filter((code) => !Number.isNaN(code));
  const places = new Map(codes.map((code, place) => [code, place]));
  const labels = labelNames(codes.map((code) => names[code]!));
  const perShape = (values: readonly number[]) =>
    nameCodes.map((code) => values[places.get(code) ?? -1] ?? Number.NaN);
  const classes = perShape(labels.class);
  opaque.forEach((value, shape) => {
    if (value === 1) classes[shape] = opClasses.indexOf('graph');
  });
  const communication = opClasses.indexOf('communication');
  return {
    class: classes,
    tile: perShape(labels.tile),
    dtype: perShape(labels.dtype),
    priority: Uint8Array.from(classes, (value) =>
      value === communication ? priorities.communication : priorities.compute,
    ),
    texts: labels.texts,
  };
}
