import type { ManifestData } from '../model/manifest.js';
import type { SessionDatabase } from '../session/query.js';

/** What other processes used of this machine while the session was measured. */
export interface MachineLoad {
  others_cores: number;
  /** Cores that the session could use. */
  cores: number;
}

/** Of the machine's cores, in other processes: from there on they take cores from what is measured. */
const busyShare = 0.25;

export const isBusy = ({ others_cores, cores }: MachineLoad): boolean => others_cores >= busyShare * cores;

/** Mean over the clean execution's samples, over all where it has none; null where nothing was sampled. */
export async function machineLoad(
  database: SessionDatabase,
  { hardware }: Pick<ManifestData, 'hardware'>,
): Promise<MachineLoad | null> {
  const [row] = await database.query<{ clean: number | null; all_of_them: number | null }>(
    `SELECT avg(value) FILTER (execution_id = 'clean') AS clean, avg(value) AS all_of_them FROM telemetry
     WHERE scope = 'other_processes' AND metric = 'cores_busy'`,
  );
  const others = row?.clean ?? row?.all_of_them ?? null;
  const cores = hardware['cpu_usable_cores'];
  return others === null || typeof cores !== 'number' || cores <= 0 ? null : { others_cores: others, cores };
}
