import { expect, test } from 'vitest';
import { traceSide } from '../../compare/sessions/trace-side.js';
import { userDatabase } from '../../facts/derived/test-queries.js';
import { readKernelOrigins } from '../../facts/trace/kernel-instances.js';
import { analyzeTrace } from '../../facts/trace/trace.js';
import { timelineScope } from '../../facts/waterfall/ranks.js';
import { stepKinds } from '../../model/record.js';
import { importSession } from '../../session/archive-import.js';
import { openSession } from '../../session/open.js';
import { testHome } from '../../session/test-folder.js';
import { explainSession } from './explain.js';

const home = testHome();
const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);

/** Kernels per mean step of a kind, as each surface shows them. */
async function kernelsPerStep(archive: string): Promise<Record<string, Record<string, number>>> {
  const session = await openSession((await importSession(archive, home)).id, home);
  const { data: trace } = await analyzeTrace(session);
  const { data: explanation } = await explainSession(session);
  const { kernels: compared } = await traceSide(session);
  const database = await userDatabase(session);
  const rows = await database.query<{ step_kind: string; n: number }>(
    'SELECT step_kind, count(*)::INTEGER AS n FROM phase_kernels GROUP BY 1',
  );
  await database.close();
  const connection = await session.connect();
  const origins = await readKernelOrigins((await timelineScope(session, connection)).scope);
  await connection.close();
  return Object.fromEntries(
    trace.phases
      .filter(({ kind }) => stepKinds.some((step) => step === kind))
      .map(({ kind, instances, kernels }) => {
        const bars = explanation.stages.find((stage) => stage.kind === kind && stage.name === null)!.bars;
        const ofClasses = bars.filter(({ id }) =>
          /^(inefficiency|nonessential|exposed_comm|kernels)\b/.test(id),
        );
        return [
          kind,
          {
            phase: kernels,
            launches: trace.launches.phases.find((row) => row.kind === kind)!.kernels,
            classes: sum(trace.classes.find((row) => row.kind === kind)!.rows.map((row) => row.per_instance)),
            origins: sum(origins.filter((row) => row.phase === kind).map(({ count }) => count)) / instances,
            waterfall: sum(ofClasses.map((bar) => bar.count ?? 0)),
            compared: sum(compared.filter((row) => row.phase === kind).map(({ count }) => count)),
            sql: rows.find((row) => row.step_kind === kind)!.n / instances,
          },
        ];
      }),
  );
}
// Between two marked decode steps of these programs the host launches kernels that choose the next token.
test.each(['se_06_collected-fault', 'se_15_sampled-fault'])(
  'kernels per step are one number on every surface: %s',
  async (name) => {
    const counts = await kernelsPerStep(`test/fixtures/diagnosis-stock/${name}.tgz`);
    expect(Object.keys(counts)).toContain('decode');
    for (const [kind, byShown] of Object.entries(counts))
      for (const [shown, count] of Object.entries(byShown))
        expect(count, `${kind}, ${shown}`).toBeCloseTo(byShown['phase']!, 6);
  },
);
