import { emptySection } from './empty-section.js';
import type { Section } from '../views/block.js';
import type { NamedOperator, OperatorOrigin } from '../facts/trace/operator-instances.js';
import type { ExecutionPart } from './chosen-events.js';
import { formatCount } from '../vocabulary/format.js';
import { layerText } from '../vocabulary/op-classes.js';
import { phaseLabel } from '../vocabulary/stages.js';
import { Icicle } from './icicle.js';
import { type TableState, countColumn, namedPage, shareColumn, timeColumn } from './named-page.js';
import type { SessionNamed } from './pages.js';

export interface OperatorsPageData {
  session: SessionNamed;
  part: ExecutionPart;
  operators: readonly NamedOperator[];
  origins: readonly OperatorOrigin[];
}

/** Operators by name: host time with and without callees, and launched kernels. */
export const operatorsPage = (
  { session, part, operators, origins }: OperatorsPageData,
  state: TableState,
): string => {
  const hasLayers = origins.some(({ layer }) => layer !== null);
  return namedPage<NamedOperator>({
    session,
    // Operators run on the host, so no device is shown.
    part: { ...part, device: null },
    state,
    title: 'Operators',
    page: '/operators',
    rowNoun: ['operator', 'operators'],
    eventNoun: ['call', 'calls'],
    rows: operators,
    nameOf: ({ name }) => name,
    columns: {
      count: countColumn('Calls'),
      self: timeColumn('Own time', ({ self_ns }) => self_ns),
      share: shareColumn('Share'),
      total: timeColumn('With callees', ({ total_ns }) => total_ns),
      median: timeColumn('Median', ({ median_ns }) => median_ns),
      max: timeColumn('Max', ({ max_ns }) => max_ns),
      ...(operators.some(({ kernels }) => kernels > 0)
        ? {
            kernels: {
              label: 'Kernels',
              sortKey: ({ kernels }: NamedOperator) => kernels,
              text: ({ kernels }: NamedOperator) => formatCount(kernels),
            },
            device: timeColumn('On the GPU', ({ device_ns }: NamedOperator) => device_ns),
          }
        : {}),
    },
    sortedBy: 'self',
    timed: { value: ({ self_ns }) => self_ns, what: 'own time' },
    lead: (linkTo) => (
      <Icicle
        label={`Own time by stage${hasLayers ? ', layer' : ''} and operator`}
        eventNoun={['call', 'calls']}
        total={operators.reduce((sum, { self_ns }) => sum + self_ns, 0)}
        origins={origins.map((origin) => ({
          ...origin,
          path: [phaseLabel(origin.phase), ...(hasLayers ? [layerText(origin.layer)] : []), origin.operator],
        }))}
        linkTo={linkTo}
      />
    ),
  });
};

/** Shown if the session has no operators: the reason, and the commands that record them. */
export const noOperators = emptySection(
  'operators',
  'Operators',
  'No operators.',
  'Nothing in this session recorded the operators of a framework.',
  ['inferscope run -- COMMAND', 'Record a PyTorch program with its operators'],
  ['inferscope profile', 'Profile a model in the embedded engine'],
);

/** Shown if only other executions of the session have operators. */
export const operatorsElsewhere = (execution: string): Section =>
  emptySection(
    'operators',
    'Operators',
    'No operators.',
    `The pages show execution ${execution}, which recorded none; the timeline shows those of the other executions.`,
  );
