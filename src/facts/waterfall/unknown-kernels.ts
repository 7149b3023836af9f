import type { TraceScope } from '../trace/scope.js';
import type { PartsByGroup } from './bar-facts.js';
import type { GroupSums } from './window-rows.js';

/** Kernels without a class that take at least this share of a stage are named. */
const minNamedShare = 0.02;

/**
 * Kernels that neither their name nor an operator classifies, per mean instance, by group of stages: the parts of the
 * bar of other operations.
 */
export async function unknownKernels(scope: TraceScope, sums: readonly GroupSums[]): Promise<PartsByGroup> {
  const partsByGroup: PartsByGroup = new Map();
  const large = sums.filter(
    ({ group, mean }) =>
      group.level !== 'inner' && (mean.classes.get('other') ?? 0) >= minNamedShare * mean.wallMs,
  );
  if (large.length === 0) return partsByGroup;
  await scope.need('members', 'window_kernel_names');
  const rows = await scope.database.query<{ grp: string; kernel: string; ns: number; n: number }>(
    `SELECT grp, kernel, sum(ns)::DOUBLE AS ns, sum(n)::DOUBLE AS n FROM window_kernel_names JOIN members USING (stage_id)
     WHERE class = 'other' GROUP BY ALL ORDER BY ns DESC`,
  );
  for (const { group, instances, mean } of large) {
    const parts = rows
      .filter(({ grp }) => grp === group.key)
      .map(({ kernel, ns, n }) => ({
        label: `unknown: ${kernel}`,
        kernel,
        ms: ns / instances / 1e6,
        count: n / instances,
      }))
      .filter(({ ms }) => ms >= minNamedShare * mean.wallMs);
    partsByGroup.set(group.key, parts);
  }
  return partsByGroup;
}
