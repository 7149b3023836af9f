import type { KernelOrigin, NamedKernel } from '../facts/trace/kernel-instances.js';
import { kernelLabels } from '../vocabulary/kernel-label.js';
import { classLabel, layerText } from '../vocabulary/op-classes.js';
import { phaseLabel } from '../vocabulary/stages.js';
import { Icicle } from './icicle.js';
import type { Block } from '../views/block.js';
import { Blocks } from '../render/html/blocks.js';
import type { ExecutionPart } from './chosen-events.js';
import { type TableState, countColumn, namedPage, shareColumn, timeColumn } from './named-page.js';
import type { SessionNamed } from './pages.js';

export interface KernelsPageData {
  session: SessionNamed;
  part: ExecutionPart;
  kernels: readonly NamedKernel[];
  origins: readonly KernelOrigin[];
  /** Roofline of the selected kernel. */
  roofline: readonly Block[];
  /** Roofline of all kernels with counters. @param linkTo link that selects a name */
  counterCharts: (linkTo: (name: string) => string) => readonly Block[];
}

/** Kernels by name, and how their time splits. */
export const kernelsPage = (
  { session, part, kernels, origins, roofline, counterCharts }: KernelsPageData,
  state: TableState,
): string => {
  const hasLayers = origins.some(({ layer }) => layer !== null);
  const hasOperators = origins.some(({ operator }) => operator !== null);
  const levels = ['stage', ...(hasLayers ? ['layer'] : []), hasOperators ? 'operator' : 'class', 'kernel'];
  const labels = kernelLabels(kernels);
  const nameOf = ({ name }: NamedKernel): string => labels.get(name)!;
  return namedPage<NamedKernel>({
    session,
    part,
    state,
    title: 'Kernels',
    page: '/kernels',
    rowNoun: ['name', 'names'],
    eventNoun: ['kernel', 'kernels'],
    rows: kernels,
    nameOf,
    columns: {
      count: countColumn('Count'),
      total: timeColumn('Total', ({ total_ns }) => total_ns),
      share: shareColumn('Share'),
      median: timeColumn('Median', ({ median_ns }) => median_ns),
      max: timeColumn('Max', ({ max_ns }) => max_ns),
    },
    sortedBy: 'total',
    ...(roofline.length > 0 ? { more: <Blocks blocks={roofline} /> } : {}),
    timed: { value: ({ total_ns }) => total_ns, what: 'kernel time' },
    charts: (linkTo) => counterCharts(linkTo),
    lead: (linkTo) => (
      <Icicle
        label={`Kernel time by ${levels.slice(0, -1).join(', ')} and ${levels.at(-1)}`}
        eventNoun={['kernel', 'kernels']}
        total={kernels.reduce((sum, { total_ns }) => sum + total_ns, 0)}
        origins={origins.map((origin) => ({
          ...origin,
          path: [
            phaseLabel(origin.phase),
            ...(hasLayers ? [layerText(origin.layer)] : []),
            hasOperators ? (origin.operator ?? 'no operator') : classLabel(origin.class ?? 'other'),
            origin.kernel,
          ],
        }))}
        linkTo={linkTo}
        labelOf={(name) => labels.get(name) ?? name}
      />
    ),
  });
};
