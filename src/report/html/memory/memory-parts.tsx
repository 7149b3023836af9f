import type { FC, PropsWithChildren } from 'hono/jsx';
import type { MemoryResult } from '../../../model/documents/memory-result.js';
import type { Chart } from '../../charts/chart.js';
import { memoryCharts, type MemoryChartName } from '../../charts/registry.js';
import type { PageSection } from '../document-page.js';
import { ChartFrame } from '../parts.js';

export type MemorySection = PageSection<MemoryResult>;

interface Props {
  name: MemoryChartName;
  result: MemoryResult;
  part?: string;
  label: string;
}

export const MemoryChart: FC<PropsWithChildren<Props>> = ({ name, result, part = '', label, children }) => {
  const chart: Chart<MemoryResult> = memoryCharts[name];
  return (
    <ChartFrame name={name} part={part} label={label} height={chart.height(result, part)} zooms={false}>
      {children}
    </ChartFrame>
  );
};

export const secondsWords = (seconds: number | null): string =>
  seconds === null ? '–' : `${seconds.toFixed(2)} s`;
