import { opClasses } from '../../../model/classes.js';
import type { TraceResult } from '../../../model/documents/trace.js';
import { classLabels } from '../../../vocabulary/op-classes.js';
import { classColors } from '../../palette.js';
import type { Chart } from '../chart.js';
import { sharesHeight, sharesOption } from '../shares.js';
import { phaseLabel } from '../../../vocabulary/stages.js';
import { classTables } from '../../../views/trace-series.js';

const sum = (values: number[]): number => values.reduce((total, value) => total + value, 0);

/** One bar per phase, 100 % = its kernel time. */
export const traceClassesChart: Chart<TraceResult> = {
  height: (result) => sharesHeight(classTables(result).length),
  key: (result) =>
    opClasses
      .filter((name) => classTables(result).some(({ rows }) => rows.some((row) => row.class === name)))
      .map((name) => ({ name: classLabels[name], color: classColors[name] })),
  build: (input) =>
    sharesOption(
      input,
      classTables(input.result).map(({ kind, rows }) => ({
        name: phaseLabel(kind),
        whole: sum(rows.map(({ total_ns }) => total_ns)) / 1e6,
        parts: opClasses.map((opClass) => ({
          name: classLabels[opClass],
          ms: (rows.find((row) => row.class === opClass)?.total_ns ?? 0) / 1e6,
          color: classColors[opClass],
        })),
      })),
    ),
};
