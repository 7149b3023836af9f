import { phaseTime } from '../../../model/headline-time.js';
import type { TraceResult } from '../../../model/documents/trace.js';
import { phaseParts, shownPhases } from '../../../views/trace-series.js';
import { phaseLabel } from '../../../vocabulary/stages.js';
import type { Chart } from '../chart.js';
import { sharesHeight, sharesOption } from '../shares.js';
import { partColor } from './colours.js';

/** One bar per phase, 100 % = headline time of a mean instance. */
export const phasesChart: Chart<TraceResult> = {
  height: (result) => sharesHeight(shownPhases(result).length),
  key: (result, _, theme) =>
    shownPhases(result)
      .slice(0, 1)
      .flatMap((phase) => phaseParts(phase).map(({ id, name }) => ({ name, color: partColor(id, theme) }))),
  build: (input) =>
    sharesOption(
      input,
      shownPhases(input.result).map((phase) => ({
        name: phaseLabel(phase.kind),
        whole: phaseTime(phase).ms,
        parts: phaseParts(phase).map(({ id, name, ms }) => ({ name, ms, color: partColor(id, input.theme) })),
      })),
    ),
};
