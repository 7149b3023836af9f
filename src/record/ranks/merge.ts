import { link } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { Issue } from '../../model/document.js';
import type { Capture } from '../../model/manifest.js';
import type { RankClockFacts } from '../../model/ranks.js';
import { type TableName, tables } from '../../model/tables.js';
import type { Workbench } from '../../model/workbench.js';
import { quote } from '../../session/database.js';
import type { Session } from '../../session/open.js';
import type { SessionFiles } from '../../session/session-files.js';
import { alignClocks, type RankClock } from './clock.js';

/** The session that the import of one file made. */
export interface RankPart {
  session: Session;
  /** Wall clock of its time 0, ns since the epoch; null where the file has none. */
  zeroNs: bigint | null;
  /** The first rank of the file; a report of several processes has the ranks from here on. */
  rank: number;
}

/** Columns that are times of the session. */
const timeColumns: ReadonlySet<string> = new Set([
  'start_ns',
  'end_ns',
  't_ns',
  'api_start_ns',
  'device_start_ns',
  'device_end_ns',
  'written_ns',
]);

/** Operation of a communication kernel by its name, where the source records no call. */
const operationByName = `CASE WHEN regexp_matches(name, 'reduce_?scatter', 'i') THEN 'ReduceScatter' WHEN regexp_matches(name, 'all_?reduce|cross_device_reduce', 'i') THEN 'AllReduce'
  WHEN regexp_matches(name, 'all_?gather', 'i') THEN 'AllGather' WHEN regexp_matches(name, 'all_?to_?all|dispatch|combine', 'i') THEN 'AllToAll'
  WHEN regexp_matches(name, 'send_?recv', 'i') THEN 'Send and Recv' WHEN regexp_matches(name, 'broadcast', 'i') THEN 'Broadcast' ELSE name END`;

interface Merged {
  captures: Capture[];
  clocks: RankClockFacts[];
  issues: Issue[];
}

/**
 * Writes the tables of all parts into one session, on one clock. A part's tables are moved as a whole, so what is computed
 * within a rank stays the same to the ns; `collectives`, which are compared between ranks, are also corrected for drift.
 * @param zeroNs time 0 of the session
 */
export async function mergeParts(
  files: SessionFiles,
  parts: readonly RankPart[],
  { execution_id, host, zeroNs }: { execution_id: string; host: string; zeroNs: bigint | null },
): Promise<Merged> {
  const { workbench } = files;
  const shiftOf = ({ zeroNs: own }: RankPart) => (own === null || zeroNs === null ? 0 : Number(own - zeroNs));
  await workbench.run(
    `CREATE TABLE rank_calls (part INTEGER, known_by VARCHAR, rank INTEGER, communicator VARCHAR, communicator_name VARCHAR, ranks INTEGER, operation VARCHAR, sequence BIGINT,
       bytes BIGINT, received_bytes BIGINT, device INTEGER, pid BIGINT, stage_id BIGINT, exposed_ns BIGINT, start_ns BIGINT, dur_ns BIGINT, end_ns BIGINT)`,
  );
  for (const [at, part] of parts.entries()) await readCalls(workbench, part, at, shiftOf(part));
  // Kernels known by name only are of an unknown group of ranks: with two ranks there is no choice.
  await workbench.run(
    "DELETE FROM rank_calls WHERE known_by = 'name' AND (SELECT count(DISTINCT rank) FROM rank_calls) > 2",
  );
  await workbench.run(
    `UPDATE rank_calls SET ranks = n FROM (SELECT communicator AS c, count(DISTINCT rank) AS n FROM rank_calls GROUP BY communicator) WHERE ranks IS NULL AND communicator = c`,
  );
  // NCCL's call of it has the size for one peer, torch's that for all.
  await workbench.run(
    "UPDATE rank_calls SET bytes = bytes * ranks WHERE known_by = 'call' AND operation = 'AllToAll'",
  );
  const clocks = await alignClocks(
    workbench,
    parts.map(({ rank }) => rank),
  );
  const captures: Capture[] = [];
  for (const [at, part] of parts.entries()) {
    const clock = clocks[at]!;
    const capture_id = captureOf(part);
    const by = {
      moved: shiftOf(part) - clock.offset_ns,
      ranks: part.rank - (await leastRank(workbench, part)),
    };
    for (const [table, found] of Object.entries(part.session.manifest.tables)) {
      if (table === 'collectives' || !(table in tables)) continue;
      for (const { path } of found.filter(({ rows }) => rows > 0))
        await workbench.keep(
          table as TableName,
          capture_id,
          `SELECT * REPLACE (${replaced(table as TableName, by)}) FROM read_parquet(${quote(join(part.session.folder, path))})`,
          { execution_id },
        );
    }
    await keepCalls(workbench, capture_id, at, clock, { execution_id, host });
    for (const { path, kind } of part.session.manifest.artifacts) {
      const name = basename(path);
      const linked = join(files.scratch, `${capture_id}-${name}`);
      await link(join(part.session.folder, path), linked);
      await files.addArtifact(linked, { kind, captureId: capture_id, name });
    }
    for (const capture of part.session.manifest.captures)
      captures.push({
        ...capture,
        capture_id,
        execution_id,
        clock: { ...capture.clock, error_bound_ns: clock.bound_ns },
      });
  }
  await workbench.run('DROP TABLE rank_calls');
  return {
    captures,
    clocks: clocks.map(({ rank, against, offset_ns, b, bound_ns, collectives }) => ({
      rank,
      against,
      offset_ns: against === null ? null : offset_ns,
      drift_ppm: against === null ? null : 1e6 * b,
      bound_ns,
      collectives,
    })),
    issues: clockIssues(clocks),
  };
}

const captureOf = ({ rank }: RankPart): string => `rank-${rank}`;

/** Times, ranks and the capture of the merged session. */
function replaced(table: TableName, { moved, ranks }: { moved: number; ranks: number }): string {
  const columns = Object.keys(tables[table].columns);
  return [
    ...columns.filter((name) => timeColumns.has(name)).map((name) => `${name} + ${moved} AS ${name}`),
    `rank + ${ranks} AS rank`,
  ].join(', ');
}

/** Rank that the part's own import gave its first process. */
async function leastRank(workbench: Workbench, part: RankPart): Promise<number> {
  const kernels = parquet(part, 'kernels');
  if (kernels === null) return part.rank;
  const [row] = await workbench.query<{ rank: number | null }>(`SELECT min(rank) AS rank FROM ${kernels}`);
  return row?.rank ?? 0;
}

function parquet({ session }: RankPart, table: TableName): string | null {
  const found = session.manifest.tables[table] ?? [];
  const rows = found.reduce((sum, file) => sum + file.rows, 0);
  return rows === 0
    ? null
    : `read_parquet([${found.map(({ path }) => quote(join(session.folder, path))).join(', ')}])`;
}

/**
 * What a part knows of its collectives: kernels that name their call (PyTorch's profiler), calls on the host (nsys) for which the
 * kernels must be found, or only the names of kernels.
 */
type KnownBy = 'kernel' | 'call' | 'name';

async function knownBy(workbench: Workbench, calls: string | null): Promise<KnownBy> {
  if (calls === null) return 'name';
  const [row] = await workbench.query<{ n: number }>(
    `SELECT count(*) AS n FROM ${calls} WHERE timed_by = 'call_cpu'`,
  );
  return row!.n > 0 ? 'call' : 'kernel';
}

/** Calls that the source recorded, else kernels by name: the n-th of a name is the same on all ranks. */
async function readCalls(workbench: Workbench, part: RankPart, at: number, shift: number): Promise<void> {
  const calls = parquet(part, 'collectives');
  const kernels = parquet(part, 'kernels');
  if (kernels === null) return;
  const known = await knownBy(workbench, calls);
  const recorded = `${part.rank} AS rank, c.communicator, c.communicator_name, c.ranks, c.operation, c.sequence, c.bytes, c.received_bytes`;
  const sources: Record<KnownBy, string> = {
    name: `SELECT rank - min(rank) OVER () + ${part.rank} AS rank, coalesce(short_name, name) AS communicator, NULL AS communicator_name, NULL AS ranks, ${operationByName} AS operation,
         row_number() OVER (PARTITION BY rank, device, coalesce(short_name, name) ORDER BY start_ns) - 1 AS sequence, NULL AS bytes, NULL AS received_bytes, device,
         pid, stage_id, exclusive_ns AS exposed_ns, start_ns, dur_ns
       FROM ${kernels} WHERE class = 'communication'`,
    call: `SELECT ${recorded}, k.device, k.pid, k.stage_id, k.exclusive_ns AS exposed_ns, k.start_ns, k.dur_ns
       FROM (SELECT * FROM ${kernels} WHERE class = 'communication') k ASOF JOIN ${calls} c ON k.api_start_ns >= c.start_ns WHERE k.api_start_ns <= c.start_ns + c.dur_ns`,
    kernel: `SELECT ${recorded}, c.device, k.pid, k.stage_id, k.exposed_ns, c.start_ns, c.dur_ns
       FROM ${calls} c LEFT JOIN (
         SELECT start_ns, dur_ns, device, any_value(exclusive_ns) AS exposed_ns, any_value(stage_id) AS stage_id, any_value(pid) AS pid
         FROM ${kernels} WHERE class = 'communication' GROUP BY ALL) k ON k.start_ns = c.start_ns AND k.dur_ns = c.dur_ns AND k.device IS NOT DISTINCT FROM c.device`,
  };
  await workbench.run(
    `INSERT INTO rank_calls SELECT ${at}, '${known}', rank, communicator, communicator_name, ranks, operation, sequence, bytes, received_bytes, device, pid, stage_id,
       exposed_ns, start_ns + ${shift}, dur_ns, start_ns + ${shift} + dur_ns FROM (${sources[known]})`,
  );
}

async function keepCalls(
  workbench: Workbench,
  capture_id: string,
  at: number,
  { a_ns: a, b }: RankClock,
  constants: { execution_id: string; host: string },
): Promise<void> {
  const [found] = await workbench.query<{ n: number }>(
    `SELECT count(*) AS n FROM rank_calls WHERE part = ${at}`,
  );
  if (found!.n === 0) return;
  await workbench.keep(
    'collectives',
    capture_id,
    `SELECT * EXCLUDE (part, known_by, start_ns, end_ns), CAST(round(start_ns - (${a} + ${b} * start_ns)) AS BIGINT) AS start_ns, 'kernel_gpu' AS timed_by
     FROM rank_calls WHERE part = ${at} ORDER BY rank_calls.start_ns`,
    constants,
  );
}

function clockIssues(clocks: readonly RankClock[]): Issue[] {
  const own = clocks.filter(({ against }) => against === null);
  if (own.length === 0) return [];
  const names = own.map(({ rank }) => rank).join(', ');
  const text = `The clocks of ranks ${names} could not be aligned with the others: too few collectives overlap, or the traces do not record which ranks a collective is of (nsys). Their times are those of their hosts.`;
  return [{ code: 'rank_clock_unaligned', severity: 'warning', text, count: own.length }];
}
