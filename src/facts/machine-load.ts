import type { MachineLoad } from '../model/documents/explain.js';
import type { ManifestData } from '../model/manifest.js';
import { isServedHere } from './bench/machine.js';
import type { SessionDatabase } from '../session/query.js';

type Sign = MachineLoad['signs'][number];

/** Timed repeats from which the median of a launch is robust against one disturbed repeat. */
const minRepeats = 3;

/**
 * Median over the points of a benchmark: one point that always varies (first use of a shape) does not indicate machine
 * load.
 */
const launchSpreadSql = `SELECT median(spread) AS value FROM (
    SELECT (max(ns) - min(ns)) / median(ns) AS spread FROM (
      SELECT execution_id, point, launch, median(end_ns - start_ns) AS ns FROM iterations
      WHERE NOT coalesce(warmup, false) AND launch IS NOT NULL AND end_ns > start_ns
      GROUP BY ALL HAVING count(*) >= ${minRepeats})
    GROUP BY execution_id, point HAVING count(*) >= 2)`;

/** Mean over the clean execution's samples, or over all if it has none. */
const sampledSql = (scope: string, metric: string) =>
  `SELECT coalesce(avg(value) FILTER (execution_id = 'clean'), avg(value)) AS value FROM telemetry
   WHERE scope = '${scope}' AND metric = '${metric}'`;

/**
 * Whether other load disturbed the measurement, from all recorded signs. Pressure stall information is not used: it
 * includes the measured program's own waiting threads.
 */
export async function readMachineLoad(
  database: SessionDatabase,
  { hardware, workload }: Pick<ManifestData, 'hardware' | 'workload'>,
): Promise<MachineLoad> {
  const valueOf = async (sql: string) =>
    (await database.query<{ value: number | null }>(sql))[0]?.value ?? null;
  const recorded = hardware['cpu_usable_cores'];
  const cores = typeof recorded === 'number' && recorded > 0 ? recorded : null;
  const candidates: (Omit<Sign, 'value' | 'reached'> & { value: number | null })[] = [
    {
      id: 'other_processes',
      // They include a server on this machine, which is what was measured.
      value:
        cores === null || (workload !== null && isServedHere(workload))
          ? null
          : await valueOf(sampledSql('other_processes', 'cores_busy')),
      unit: 'cores',
      threshold: 0.25 * (cores ?? 0),
      why: 'a quarter of the usable cores: the program leaves one core to the system, so more than that slows it down',
    },
    {
      id: 'steal',
      value: await valueOf(sampledSql('host', 'steal_percent')),
      unit: '%',
      threshold: 5,
      why: 'the smallest share of a stage that a rule reports: this much can be steal time alone',
    },
    {
      id: 'launch_spread',
      value: await valueOf(launchSpreadSql),
      unit: 'ratio',
      threshold: 0.2,
      // q(0.99; 5, ∞) = 4.60 of the studentized range, times 4.3 %.
      why: 'launches vary with a standard deviation of 4.3 % on an idle 2-core machine (bench/repeatability): 99 of 100 sets of five lie within 20 %',
    },
  ];
  const signs = candidates.flatMap(({ value, ...sign }) =>
    value === null ? [] : [{ ...sign, value, reached: value >= sign.threshold }],
  );
  return { busy: signs.some(({ reached }) => reached), usable_cores: cores, signs };
}
