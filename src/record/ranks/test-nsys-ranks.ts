import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { openDatabase, quote } from '../../session/database.js';
import { epochNs, type RankEvents } from './test-ranks.js';

/** Writes tables as `nsys export --type parquetdir` does, with the ranks of one host. */
export async function writeNsysRanks(
  path: string,
  ranks: readonly RankEvents[],
  world: number,
): Promise<void> {
  mkdirSync(path, { recursive: true });
  const names: string[] = [];
  const idOf = (name: string) => {
    const index = names.indexOf(name);
    return index === -1 ? names.push(name) - 1 : index;
  };
  const kernels: unknown[][] = [];
  const calls: unknown[][] = [];
  const ranges: unknown[][] = [];
  for (const { rank, kernels: rankKernels, launches, steps, stepName } of ranks) {
    const globalPid = (1000 + rank) * 2 ** 24;
    const globalTid = globalPid + 1000 + rank;
    const launch = idOf('cudaLaunchKernel_v7000');
    rankKernels.forEach(({ name, start, dur, stream }, index) => {
      const id = idOf(name);
      const short = idOf(name.replace(/^void |[<(].*$/g, ''));
      kernels.push([
        start,
        start + dur,
        rank % 8,
        1,
        stream,
        index + 1,
        globalPid,
        id,
        short,
        528,
        1,
        1,
        256,
        1,
        1,
      ]);
      calls.push([launches[index], launches[index]! + 2000, 1, globalTid, index + 1, launch]);
    });
    steps.forEach(({ start, end }, step) =>
      ranges.push([start, end, 59, `${stepName}_${step}`, globalTid, 0]),
    );
  }
  const [first] = ranks;
  const tables: Record<string, [columns: string, rows: unknown[][]]> = {
    CUPTI_ACTIVITY_KIND_KERNEL: [
      'start BIGINT, "end" BIGINT, deviceId UINTEGER, contextId UBIGINT, streamId UBIGINT, correlationId UINTEGER, globalPid UBIGINT, demangledName UBIGINT, shortName UBIGINT, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER',
      kernels,
    ],
    CUPTI_ACTIVITY_KIND_RUNTIME: [
      'start BIGINT, "end" BIGINT, eventClass UINTEGER, globalTid UBIGINT, correlationId UINTEGER, nameId UBIGINT',
      calls,
    ],
    NVTX_EVENTS: [
      'start BIGINT, "end" BIGINT, eventType UINTEGER, text VARCHAR, globalTid UBIGINT, domainId UBIGINT',
      ranges,
    ],
    StringIds: ['id INTEGER, value VARCHAR', names.map((name, id) => [id, name])],
    TARGET_INFO_SESSION_START_TIME: ['utcEpochNs UBIGINT', [[epochNs]]],
    TARGET_INFO_GPU: ['id UINTEGER, name VARCHAR', [[0, 'NVIDIA H100 80GB HBM3']]],
    META_DATA_CAPTURE: [
      'name VARCHAR, value VARCHAR',
      [
        ['PROCESS_0:COMMAND', 'python'],
        ...(ranks.length > 1 ? [] : [['PROCESS_0:ENVIRONMENT_VARIABLE', `SLURM_PROCID="${first!.rank}"`]]),
        ['PROCESS_0:ENVIRONMENT_VARIABLE', 'SLURM_STEP_ID="0"'],
        ['PROCESS_0:ENVIRONMENT_VARIABLE', `SLURM_STEP_NUM_TASKS="${world}"`],
      ],
    ],
  };
  const { connection, close } = await openDatabase();
  for (const [table, [columns, rows]] of Object.entries(tables)) {
    await connection.run(`CREATE TABLE ${table} (${columns})`);
    const value = (cell: unknown) => (typeof cell === 'string' ? quote(cell) : String(cell));
    for (let from = 0; from < rows.length; from += 500)
      await connection.run(
        `INSERT INTO ${table} VALUES ${rows
          .slice(from, from + 500)
          .map((row) => `(${row.map(value).join(', ')})`)
          .join(', ')}`,
      );
    await connection.run(`COPY ${table} TO ${quote(join(path, `${table}.parquet`))} (FORMAT parquet)`);
  }
  await close();
}
