import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { openDatabase, quote } from '../../session/database.js';
import { epochNs, type RankEvents } from './test-ranks.js';

/**
 * The same kernels launched by one thread of one process, which drives the GPUs of all ranks and marks the steps of rank 0: what the other ranks
 * started before such a step starts in it. The ranks' clocks must be equal.
 */
function asOneThread(ranks: readonly RankEvents[]): RankEvents[] {
  const [{ steps }] = ranks as readonly [RankEvents];
  const events: RankEvents[] = ranks.map((row, place) => ({
    ...row,
    kernels: [],
    launches: [],
    steps: place === 0 ? steps : [],
  }));
  let free = 0;
  for (const { place, kernel, step, launch } of ranks
    .flatMap(({ kernels, launches }, place) =>
      kernels.map((kernel, index) => ({
        place,
        kernel,
        launch: launches[index]!,
        step: steps[Math.floor((index * steps.length) / kernels.length)]!,
      })),
    )
    .toSorted((a, b) => a.step.start - b.step.start || a.kernel.start - b.kernel.start)) {
    const at = Math.max(launch, step.start + 1000, free);
    free = at + 2100;
    const start = Math.max(kernel.start, at + 4000);
    events[place]!.launches.push(at);
    events[place]!.kernels.push({ ...kernel, start, dur: kernel.start + kernel.dur - start });
  }
  return events;
}

/**
 * Writes tables as `nsys export --type parquetdir` does, with the ranks of one host.
 * @param process one process drives the GPUs of all ranks, from a thread per GPU or from one; then NCCL's ranges name its sends and receives
 */
export async function writeNsysRanks(
  path: string,
  ranks: readonly RankEvents[],
  world: number,
  process: 'each' | 'thread per GPU' | 'one thread' = 'each',
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
  for (const { rank, kernels: rankKernels, launches, steps, stepName } of process === 'one thread'
    ? asOneThread(ranks)
    : ranks) {
    const pid = process === 'each' ? 1000 + rank : 1000;
    const globalPid = pid * 2 ** 24;
    const globalTid = globalPid + (process === 'one thread' ? pid : 1000 + rank);
    const launch = idOf('cudaLaunchKernel_v7000');
    rankKernels.forEach(({ name, start, dur, stream, call }, index) => {
      const correlation = rank * 1e6 + index + 1;
      if (process !== 'each' && call?.peer !== undefined)
        ranges.push([
          launches[index]! - 1,
          launches[index]! + 2001,
          59,
          null,
          globalTid,
          1,
          idOf(call.name === 'send' ? 'ncclSend' : 'ncclRecv'),
          JSON.stringify({
            'NCCL communicator ID': 7,
            'Message size [bytes]': call.sent,
            'Peer rank': call.peer,
          }),
        ]);
      const id = idOf(name);
      const short = idOf(name.replace(/^void |[<(].*$/g, ''));
      kernels.push([
        start,
        start + dur,
        rank % 8,
        1,
        stream,
        correlation,
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
      calls.push([launches[index], launches[index]! + 2000, 1, globalTid, correlation, launch]);
    });
    steps.forEach(({ start, end }, step) =>
      ranges.push([start, end, 59, `${stepName}_${step}`, globalTid, 0, null, null]),
    );
  }
  const [first] = ranks;
  // One thread waits for all devices before its next step.
  if (process === 'one thread')
    first!.steps.forEach(({ start, end }, step) => {
      const launched = calls.flatMap(([at]) => (Number(at) >= start && Number(at) < end ? [Number(at)] : []));
      const from = Math.max(...launched) + 2100;
      calls.push([from, end, 1, 1000 * 2 ** 24 + 1000, 9e6 + step, idOf('cudaDeviceSynchronize_v3020')]);
    });
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
      'start BIGINT, "end" BIGINT, eventType UINTEGER, text VARCHAR, globalTid UBIGINT, domainId UBIGINT, textId INTEGER, jsonText VARCHAR',
      ranges,
    ],
    StringIds: ['id INTEGER, value VARCHAR', names.map((name, id) => [id, name])],
    TARGET_INFO_SESSION_START_TIME: ['utcEpochNs UBIGINT', [[epochNs]]],
    TARGET_INFO_GPU: ['id UINTEGER, name VARCHAR', [[0, 'NVIDIA H100 80GB HBM3']]],
    META_DATA_CAPTURE: [
      'name VARCHAR, value VARCHAR',
      [
        ['PROCESS_0:COMMAND', 'python'],
        ...(ranks.length > 1 || process !== 'each'
          ? []
          : [['PROCESS_0:ENVIRONMENT_VARIABLE', `SLURM_PROCID="${first!.rank}"`]]),
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
