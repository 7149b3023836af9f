import { kernelLabel } from '../../../vocabulary/kernel-label.js';
import type { FC, PropsWithChildren } from 'hono/jsx';
import type { TraceResult } from '../../../model/documents/trace.js';
import type { Chart } from '../../charts/chart.js';
import { traceCharts, type TraceChartName } from '../../charts/registry.js';
import { themes, type Theme } from '../../palette.js';
import { ChartFrame } from '../parts.js';

interface Props {
  name: TraceChartName;
  result: TraceResult;
  label: string;
}

export const TraceChart: FC<PropsWithChildren<Props>> = ({ name, result, label, children }) => {
  const chart: Chart<TraceResult> = traceCharts[name];
  return (
    <ChartFrame
      name={name}
      part=""
      label={label}
      height={chart.height(result, '')}
      zooms={chart.zooms ?? false}
    >
      {children}
    </ChartFrame>
  );
};

/** Demangled names run to kilobytes; the page's data has them whole. */
const longestTitle = 400;

/** A kernel by its short name, the full one on hover. */
export const KernelName: FC<{ name: string; shortName: string }> = ({ name, shortName }) => (
  <code title={name.length > longestTitle ? `${name.slice(0, longestTitle)}…` : name}>
    {kernelLabel(name || shortName)}
  </code>
);

interface Entry {
  name: string;
  color: string;
}

/** Names of a chart's colours, those of the reader's theme. */
export const ColorKey: FC<{ label: string; entries: (theme: Theme) => Entry[] }> = ({ label, entries }) => {
  const dark = entries(themes.dark);
  return (
    <ul class="legend" aria-label={label}>
      {entries(themes.light).map(({ name, color }, index) => (
        <li>
          <span class="class-name">
            <span
              class="swatch"
              style={`background:light-dark(${color},${dark[index]?.color ?? color})`}
              aria-hidden="true"
            />
            {name}
          </span>
        </li>
      ))}
    </ul>
  );
};
