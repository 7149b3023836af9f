import type { Issue } from '../../model/document.js';
import type { Baseline } from '../../model/documents/baseline.js';
import { InferscopeError } from '../../model/errors.js';
import type { ManifestData } from '../../model/manifest.js';
import { hasRows, hasSubject } from '../../model/subjects.js';
import type { Session } from '../../session/open.js';
import { withRows } from '../../session/select.js';
import { readLoadPlan } from '../../facts/serving/serving.js';
import { loadLabel } from '../../vocabulary/loads.js';
import { factsOf } from '../sessions/environment.js';
import { benchParts, engineArgsOf, variantsOf } from './bench-parts.js';
import { idOf, type MetricPart, pooled } from './metric-parts.js';
import { iterationParts, memoryParts, requestParts } from './row-parts.js';
import { resultParts } from './result-parts.js';
import { traceParts } from './trace-parts.js';

/** Sessions with comparable figures. Memory alone is not enough, because recordings of `monitor` have it too. */
export const comparable = withRows(
  'repeats, requests, results or kernels',
  'iterations',
  'requests',
  'metrics',
  'kernels',
);

export type Sampled = Pick<Baseline, 'sessions' | 'identity' | 'metrics'>;

/**
 * Comparable figures of sessions, with their known spread. Several sessions are runs of the same thing and are pooled,
 * each as one launch.
 * @param variant label of one engine configuration of a benchmark; null: all
 * @throws E_USAGE if there are no comparable figures, or no such variant
 */
export async function sampleSessions(
  sessions: readonly Session[],
  variant: string | null = null,
): Promise<Sampled> {
  const parts = new Map<string, MetricPart[]>();
  for (const session of sessions) {
    for (const part of await partsOf(session, variant)) {
      const id = idOf(part);
      parts.set(id, [...(parts.get(id) ?? []), part]);
    }
  }
  if (parts.size === 0) {
    throw new InferscopeError('E_USAGE', {
      what: `there is nothing to compare in ${sessions.map(({ id }) => id).join(', ')}`,
      why: 'There are no timed repeats, no stages of a GPU timeline, no requests and no results of a benchmark.',
      fix: 'Choose another: inferscope session list shows them.',
    });
  }
  return {
    sessions: sessions.map(({ id, user, manifest }) => ({
      id,
      name: user.name,
      title: manifest.title,
      kind: manifest.kind,
      started_at: manifest.started_at,
    })),
    identity: [
      ...(await engineArgsOf(sessions, variant)),
      ...identityOf(sessions.map(({ manifest }) => manifest)),
    ],
    metrics: [...parts.values()].map(pooled),
  };
}

async function partsOf(session: Session, variant: string | null): Promise<MetricPart[]> {
  const unprofiled = session.manifest.executions
    .filter(({ purpose }) => purpose === 'clean' || purpose === 'imported')
    .map(({ execution_id }) => execution_id);
  const variants = await variantsOf(session, variant);
  const database = await session.connect();
  try {
    if (variants) return await benchParts(database, variants);
    const rows = [
      ...(await iterationParts(database, unprofiled)),
      ...(await requestParts(database, unprofiled, await loadsOf(session))),
      ...(await resultParts(session.manifest.captures, database)),
      ...(await memoryParts(database, unprofiled)),
    ];
    return hasRows(session.manifest, 'kernels') ? [...rows, ...(await traceParts(session))] : rows;
  } finally {
    await database.close();
  }
}

/** Labels of the loads of a load test by execution. The number of a load says nothing about it. */
async function loadsOf(session: Session): Promise<Map<string, string>> {
  if (!hasSubject(session.manifest, 'load')) return new Map();
  const { points } = await readLoadPlan(session);
  return new Map(points.map(({ execution_id, load }) => [execution_id, loadLabel(load)]));
}

/** Shape of a workload, which differs between the points of a benchmark. */
const shapeFacts: ReadonlySet<string> = new Set(['batch_size', 'input_len', 'output_len']);

/**
 * Facts of all sessions: one value if it is equal in all of them, else every value. Metrics of a benchmark name the
 * shape of their point.
 */
function identityOf(manifests: readonly ManifestData[]): Baseline['identity'] {
  const facts = manifests.map(factsOf);
  const hasPoints = manifests.some((manifest) => hasSubject(manifest, 'bench'));
  const ids = [...new Set(facts.flatMap((fact) => [...fact.keys()]))].filter(
    (id) => !(hasPoints && shapeFacts.has(id)),
  );
  return ids.map((id) => {
    const sameFact = facts.flatMap((fact) => fact.get(id) ?? []);
    const { label, part } = sameFact[0]!;
    return { label, part, value: [...new Set(sameFact.map(({ value }) => value))].join(severalValues) };
  });
}

const severalValues = ' | ';

/** Sessions of one sample that ran different workloads: their spread is of those, too. */
export function mixedWorkloads({ identity }: Pick<Sampled, 'identity'>): Issue[] {
  const mixed = identity.filter(({ part, value }) => part === 'workload' && value.includes(severalValues));
  return mixed.length === 0
    ? []
    : [
        {
          code: 'other_workload',
          severity: 'warning',
          text: `The sessions are not runs of one workload (${mixed.map(({ label, value }) => `${label} ${value}`).join(', ')}): means and spread are over all of them.`,
        },
      ];
}
