import type { Workbench } from '../../model/workbench.js';
import type { RankClock } from './clock.js';

/** SQL of whether a row of a part's `collectives` is a kernel known only by its name: no call names its ranks or size. */
export const isNamed = 'ranks IS NULL AND bytes IS NULL';

/** Minimum share of a name's calls that overlap in time on all ranks of a group. */
const minOverlapping = 0.99;

/**
 * Creates `named_groups`: for each execution and name of kernels known only by name, the largest size of groups of consecutive ranks of which
 * every group runs the n-th kernel of the name at the same time: DeepEP's dispatch, vLLM's own all-reduce, kernels of CUDA graphs.
 * Names without such a size are left out.
 * @param rows SQL of (execution_id, communicator, sequence, rank, start_ns, end_ns), where communicator is the name
 */
export async function createNamedGroups(
  workbench: Workbench,
  rows: string,
  clocks: readonly RankClock[],
): Promise<void> {
  const values = clocks.map(({ rank, a_ns: a, b }) => `(${rank}, ${a}::DOUBLE, ${b}::DOUBLE)`).join(', ');
  const onSessionClock = (ns: string) => `n.${ns} - (c.a + c.b * n.${ns})`;
  await workbench.run(
    `CREATE TABLE named_calls AS SELECT execution_id, communicator, sequence, n.rank, ${onSessionClock('start_ns')} AS start_ns, ${onSessionClock('end_ns')} AS end_ns
     FROM (${rows}) n ASOF JOIN (VALUES ${values}) c(rank, a, b) ON n.rank >= c.rank`,
  );
  await workbench.run(
    'CREATE TABLE named_groups (execution_id VARCHAR, communicator VARCHAR, group_size INTEGER)',
  );
  const [row] = await workbench.query<{ ranks: number }>(
    'SELECT count(DISTINCT rank) AS ranks FROM named_calls',
  );
  const ranks = row!.ranks;
  const sizes = Array.from({ length: ranks }, (_, index) => ranks - index).filter(
    (size) => size > 1 && ranks % size === 0,
  );
  for (const size of sizes)
    await workbench.run(
      `INSERT INTO named_groups SELECT execution_id, communicator, ${size} FROM (
         SELECT execution_id, communicator, count(*) = ${size} AND max(start_ns) <= min(end_ns) AS overlap
         FROM named_calls ANTI JOIN named_groups USING (execution_id, communicator) GROUP BY execution_id, communicator, rank // ${size}, sequence)
       GROUP BY ALL HAVING count_if(overlap) >= ${minOverlapping} * count(*)`,
    );
  await workbench.run('DROP TABLE named_calls');
}
