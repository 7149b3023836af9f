import type { Workbench } from '../../model/workbench.js';
import type { NsysTables } from './tables.js';

/** SQL for the rank of a row. */
export interface RankSql {
  /** Number of ranks. */
  ranks: number;
  /** For rows with pid: the lowest rank of the process. */
  ofProcess: string;
  /** For rows with pid and "deviceId". */
  ofDevice: string;
}

interface Unit {
  pid: number;
  device: number;
  /** Whether the process has several ranks, one for each device. */
  perDevice: boolean;
}

/**
 * A process that uses GPUs is a rank, and a process that communicates through NCCL on several devices has a rank for each of these. Ranks
 * are numbered by their first devices, as launchers place them. With one process on GPUs all processes have its rank; with several, those
 * without GPU work have none.
 * @param only rank of the only process on GPUs
 */
export async function findRankSql(
  workbench: Workbench,
  { shapes, strings }: Pick<NsysTables, 'shapes' | 'strings'>,
  only = 0,
): Promise<RankSql> {
  const parts = [shapes.kernel, shapes.graph, shapes.memcpy, shapes.memset].filter((part) => part !== null);
  if (parts.length === 0) return { ranks: 1, ofProcess: `${only}`, ofDevice: `${only}` };
  const used = parts.map((part) => `SELECT pid, "deviceId" AS device FROM ${part}`).join(' UNION ALL ');
  const communicating = shapes.kernel
    ? `SELECT pid, "deviceId" AS device FROM ${shapes.kernel} SEMI JOIN (SELECT id FROM ${strings} WHERE starts_with(value, 'nccl')) ON id = "shortName"`
    : 'SELECT NULL::BIGINT AS pid, NULL::BIGINT AS device WHERE false';
  const units = await workbench.query<Unit>(
    `WITH communicating AS (SELECT pid, device FROM (${communicating}) WHERE pid IS NOT NULL AND device IS NOT NULL GROUP BY pid, device
       QUALIFY count(*) OVER (PARTITION BY pid) > 1)
     SELECT CAST(pid AS BIGINT) AS pid, CAST(device AS BIGINT) AS device, true AS "perDevice" FROM communicating
     UNION ALL SELECT CAST(pid AS BIGINT), CAST(min(device) AS BIGINT), false FROM (${used}) ANTI JOIN communicating USING (pid) WHERE pid IS NOT NULL GROUP BY pid
     ORDER BY device, pid`,
  );
  const processes = new Map<number, number>();
  for (const [rank, { pid }] of units.entries()) if (!processes.has(pid)) processes.set(pid, rank);
  const ofProcess =
    processes.size < 2
      ? `${units.length > 1 ? 0 : only}`
      : `CASE pid ${[...processes].map(([pid, rank]) => `WHEN ${pid} THEN ${rank}`).join(' ')} END::BIGINT`;
  const ofDevices = units.flatMap(({ pid, device, perDevice }, rank) =>
    perDevice ? `WHEN pid = ${pid} AND "deviceId" = ${device} THEN ${rank}` : [],
  );
  const ofDevice = ofDevices.length === 0 ? ofProcess : `CASE ${ofDevices.join(' ')} ELSE ${ofProcess} END`;
  return { ranks: units.length, ofProcess, ofDevice };
}
