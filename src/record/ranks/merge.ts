import { link } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { basename, join } from 'node:path';
import { inLanes } from '../../model/lanes.js';
import type { Capture } from '../../model/manifest.js';
import type { RankClockFacts } from '../../model/ranks.js';
import { type TableName, tables } from '../../model/tables.js';
import type { Workbench } from '../../model/workbench.js';
import { quote } from '../../session/database.js';
import type { Session } from '../../session/open.js';
import type { SessionFiles } from '../../session/session-files.js';
import { callsPath, type PartCalls } from './calls.js';
import { alignClocks, type RankClock } from './clock.js';

/** The session that the import of one file made. */
export interface RankPart {
  session: Session;
  /** Its folder, with the collectives in a file. */
  folder: string;
  calls: PartCalls;
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

/** Collectives of a rank that clocks are aligned on: more do not move the medians. */
const mostEnds = 4096;

interface Merged {
  captures: Capture[];
  clocks: RankClockFacts[];
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
  const paired = await makeCalls(workbench, parts, shiftOf);
  const most = Math.max(1, ...parts.map(({ calls }) => calls.calls / calls.processes));
  const clocks = await alignClocks(
    workbench,
    parts.map(({ rank }) => rank),
    Math.ceil(most / mostEnds),
  );
  const constants = { execution_id, host };
  // Lanes use all cores: several threads in each cost half as much again.
  await workbench.limit({ threads: 1 });
  await inLanes(parts, availableParallelism(), async (part, at) => {
    const clock = clocks[at]!;
    await moveTables(workbench, part, { moved: shiftOf(part) - clock.offset_ns, execution_id });
    if (paired.has(part)) await keepCalls(workbench, part, { clock, shift: shiftOf(part), constants });
  });
  const captures: Capture[] = [];
  for (const [at, part] of parts.entries()) {
    const capture_id = captureOf(part);
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
        clock: { ...capture.clock, error_bound_ns: clocks[at]!.bound_ns },
      });
  }
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

/**
 * Makes `rank_calls` of the collectives of all parts in the session's time, and `rank_groups`, the ranks of communicators of
 * which no call says how many they are.
 * @returns the parts in it. Kernels known by name only are of an unknown group of ranks: with two ranks there is no choice, with more
 * such parts are left out
 */
async function makeCalls(
  workbench: Workbench,
  parts: readonly RankPart[],
  shiftOf: (part: RankPart) => number,
): Promise<ReadonlySet<RankPart>> {
  const ranks = parts.reduce((sum, { calls }) => sum + calls.processes, 0);
  const paired = parts.filter(({ calls }) => calls.calls > 0 && (calls.known_by !== 'name' || ranks <= 2));
  const paths = paired.map(({ folder }) => quote(callsPath(folder)));
  const rows = paired.map((part, at) => `(${paths[at]}, ${part.rank}, ${shiftOf(part)})`);
  await workbench.run(
    paired.length === 0
      ? 'CREATE VIEW rank_calls AS SELECT NULL::INTEGER AS rank, NULL AS communicator, NULL AS operation, NULL::BIGINT AS sequence, NULL::INTEGER AS ranks, NULL::BIGINT AS start_ns, NULL::BIGINT AS end_ns WHERE false'
      : `CREATE VIEW rank_calls AS SELECT p.rank + c.rank AS rank, communicator, operation, sequence, ranks, start_ns + shift AS start_ns, start_ns + shift + dur_ns AS end_ns
         FROM read_parquet([${paths.join(', ')}], filename = 'path') c JOIN (VALUES ${rows.join(', ')}) p(path, rank, shift) USING (path)`,
  );
  await workbench.run(
    'CREATE TABLE rank_groups AS SELECT communicator, count(DISTINCT rank) AS n FROM rank_calls WHERE ranks IS NULL GROUP BY ALL',
  );
  return new Set(paired);
}

async function moveTables(
  workbench: Workbench,
  part: RankPart,
  { moved, execution_id }: { moved: number; execution_id: string },
): Promise<void> {
  const by = { moved, ranks: part.rank - part.calls.first_rank };
  for (const [table, found] of Object.entries(part.session.manifest.tables)) {
    if (table === 'collectives' || !(table in tables)) continue;
    for (const { path } of found.filter(({ rows }) => rows > 0))
      await workbench.keep(
        table as TableName,
        captureOf(part),
        `SELECT * REPLACE (${replaced(table as TableName, by)}) FROM read_parquet(${quote(join(part.session.folder, path))})`,
        { execution_id },
      );
  }
}

/**
 * NCCL's call of an all-to-all has the size for one peer, torch's that for all. Decimal numbers, as DuckDB reads literals, take four
 * times as long as the table's writing.
 */
async function keepCalls(
  workbench: Workbench,
  part: RankPart,
  {
    clock: { a_ns: a, b },
    shift,
    constants,
  }: { clock: RankClock; shift: number; constants: { execution_id: string; host: string } },
): Promise<void> {
  const bytes =
    part.calls.known_by === 'call'
      ? "CASE WHEN operation = 'AllToAll' THEN bytes * ranks ELSE bytes END"
      : 'bytes';
  await workbench.keep(
    'collectives',
    captureOf(part),
    `SELECT * REPLACE (${bytes} AS bytes, CAST(round(start_ns + ${shift} - (${a}::DOUBLE + ${b}::DOUBLE * (start_ns + ${shift}))) AS BIGINT) AS start_ns), 'kernel_gpu' AS timed_by
     FROM (
       SELECT c.* REPLACE (c.rank + ${part.rank} AS rank, coalesce(c.ranks, g.n) AS ranks)
       FROM read_parquet(${quote(callsPath(part.folder))}) c LEFT JOIN rank_groups g ON g.communicator = c.communicator)`,
    constants,
  );
}
