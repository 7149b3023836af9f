import { readKernelOrigins, readNamedKernels } from '../facts/trace/kernel-instances.js';
import { readNamedOperators, readOperatorOrigins } from '../facts/trace/operator-instances.js';
import type { TraceScope } from '../facts/trace/scope.js';
import { timelineScope } from '../facts/waterfall/ranks.js';
import { hasRows } from '../model/subjects.js';
import type { Session } from '../session/open.js';
import type { Block } from '../views/block.js';
import { counterBlocks } from '../views/counters.js';
import type { ExecutionPart } from './chosen-events.js';
import { countersOf, rooflineOf } from './gemms-of-session.js';
import { kernelsPage } from './kernels-page.js';
import type { TableState } from './named-page.js';
import { ncuRoofline, isSameKernel } from './ncu-roofline.js';
import { pageOfBlocks } from './blocks-page.js';
import { pagesOfSession, withDatabase } from './open-session-pages.js';
import { noOperators, operatorsElsewhere, operatorsPage } from './operators-page.js';
import { once, type OpenSession } from './timeline/open-timelines.js';

/** Kernels of the rank and device that the explanation uses; without a timeline the kernels that Nsight Compute profiled. */
export async function kernels(openSession: OpenSession, state: TableState): Promise<string> {
  const { session } = openSession;
  const counters = await countersOf(openSession);
  if (!hasRows(session.manifest, 'kernels')) {
    const blocks = counters
      ? [...ncuRoofline(counters.data.kernels, () => undefined), ...counterBlocks(counters)]
      : noKernels;
    return pageOfBlocks(openSession, 'Kernels', '/kernels', [{ id: 'kernels', title: 'Kernels', blocks }]);
  }
  const kernelNames = await once(openSession, 'kernels', () =>
    inScope(session, async (scope) => ({
      kernels: await readNamedKernels(scope),
      origins: await readKernelOrigins(scope),
    })),
  );
  const roofline =
    state.chosen === '' ? [] : await rooflineOf(openSession, state.chosen, kernelNames.part.execution);
  return kernelsPage(
    {
      ...kernelNames,
      session: pagesOfSession(openSession),
      roofline,
      counterCharts: (linkTo) =>
        ncuRoofline(counters?.data.kernels ?? [], (kernel) => {
          const row = kernelNames.kernels.find(({ name }) => isSameKernel(kernel, name));
          return row && linkTo(row.name);
        }),
    },
    state,
  );
}

/** Shown if the session has no kernels. */
const noKernels: Block[] = [
  { type: 'missing', what: 'No kernels.', why: 'Nothing in this session recorded a GPU.' },
  {
    type: 'commands',
    items: [{ command: 'inferscope run -- COMMAND', why: 'Record the kernels of a program' }],
  },
];

/** Operators of the rank that the explanation uses. */
export async function operators(openSession: OpenSession, state: TableState): Promise<string> {
  const { session } = openSession;
  if (!hasRows(session.manifest, 'ops'))
    return pageOfBlocks(openSession, 'Operators', '/operators', [noOperators]);
  const operatorNames = await once(openSession, 'operators', () =>
    inScope(session, async (scope) => ({
      operators: await readNamedOperators(scope),
      origins: await readOperatorOrigins(scope),
    })),
  );
  if (operatorNames.operators.length === 0)
    return pageOfBlocks(openSession, 'Operators', '/operators', [
      operatorsElsewhere(operatorNames.part.execution),
    ]);
  return operatorsPage({ ...operatorNames, session: pagesOfSession(openSession) }, state);
}

/** Runs a query on the rank and device that the explanation uses, and returns the result with them. */
export const inScope = <T extends object>(
  session: Session,
  use: (scope: TraceScope) => Promise<T>,
): Promise<T & { part: ExecutionPart }> =>
  withDatabase(session, async (database) => {
    const { scope } = await timelineScope(session, database, {});
    const { focus, attribution } = scope.source;
    const execution = attribution.execution_id;
    const [ranks] = await database.query<{ n: number }>(
      `SELECT count(DISTINCT rank) AS n FROM (SELECT rank FROM kernels WHERE execution_id = $1
       UNION ALL SELECT rank FROM ops WHERE execution_id = $1)`,
      [execution],
    );
    const part = {
      execution,
      rank: (ranks?.n ?? 0) > 1 ? focus.rank : null,
      device: hasRows(session.manifest, 'kernels') ? focus.device : null,
    };
    return { ...(await use(scope)), part };
  });
