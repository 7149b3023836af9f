import type { TraceResult } from '../../../model/documents/trace.js';
import { formatMs, formatNumber, formatPercent, nbsp } from '../../../vocabulary/format.js';
import { classLabels } from '../../../vocabulary/op-classes.js';
import { classColors } from '../../palette.js';
import { axisStyle, base, grid, tip, type Chart } from '../chart.js';
import { phaseShades } from './telemetry.js';

const nameOf = (name: keyof typeof classLabels | 'copies'): string =>
  name === 'copies' ? 'copies' : classLabels[name];

/** How busy the device was, by class, in equal spans of the whole capture; phases behind it. */
export const densityChart: Chart<TraceResult> = {
  height: () => 190,
  build: (input) => {
    const { timeline } = input.result;
    if (!timeline) return base(input);
    const { start_ns, bin_ns, classes } = timeline.density;
    const bins = Math.max(0, ...classes.map(({ share }) => share.length));
    const [from, to] = [start_ns / 1e6, (start_ns + bins * bin_ns) / 1e6];
    const highest = Math.max(
      0,
      ...Array.from({ length: bins }, (_, bin) =>
        classes.reduce((total, { share }) => total + (share[bin] ?? 0), 0),
      ),
    );
    return {
      ...base(input),
      grid: grid({ top: 10, right: 16 }),
      xAxis: {
        type: 'value',
        min: from,
        max: to,
        ...axisStyle(input),
        splitLine: { show: false },
        axisLabel: {
          color: input.theme.muted,
          hideOverlap: true,
          showMaxLabel: false,
          showMinLabel: false,
          formatter: (value: number) => `${formatNumber(value)}${nbsp}ms`,
        },
      },
      yAxis: {
        type: 'value',
        min: 0,
        // A device that is never half busy would be a line at the bottom.
        ...(highest > 0.5 ? { max: 1, interval: 0.5 } : { splitNumber: 2 }),
        ...axisStyle(input),
        axisLabel: { color: input.theme.muted, formatter: (value: number) => formatPercent(value) },
      },
      series: classes.map(({ class: name, share }, index) => {
        const color = name === 'copies' ? classColors.copy : classColors[name];
        return {
          type: 'line' as const,
          name: nameOf(name),
          stack: 'busy',
          step: 'end' as const,
          showSymbol: false,
          triggerLineEvent: true,
          lineStyle: { width: 0 },
          itemStyle: { color },
          areaStyle: { color, opacity: 1 },
          data: share.map((value, bin) => [from + ((bin + 1) * bin_ns) / 1e6, value]),
          tooltip: { formatter: () => tip(nameOf(name), `in spans of ${formatMs(bin_ns / 1e6)}`) },
          ...(index > 0
            ? {}
            : {
                markArea: {
                  silent: true,
                  data: phaseShades(input.result, input.theme).map(
                    ({ from_ms, to_ms, color: shade }): [object, object] => [
                      { xAxis: from_ms, itemStyle: { color: shade, opacity: 0.3 } },
                      { xAxis: to_ms },
                    ],
                  ),
                },
              }),
        };
      }),
    };
  },
};
