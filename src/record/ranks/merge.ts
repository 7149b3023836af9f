import { link } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { basename, join } from 'node:path';
import { inLanes } from '../../model/lanes.js';
import type { Artifact, Capture } from '../../model/manifest.js';
import type { RankClockFacts } from '../../model/ranks.js';
import { type TableName, tables } from '../../model/tables.js';
import type { Workbench } from '../../model/workbench.js';
import { quote } from '../../session/database.js';
import type { Session } from '../../session/open.js';
import type { SessionFiles } from '../../session/session-files.js';
import { jobPeerSql, membersSql, type PartCalls, totalBytesSql, withPairs } from './calls.js';
import { alignClocks, type RankClock } from './clock.js';
import { createNamedGroups, isNamed } from './named-groups.js';

/** The session of one rank, or of the processes in one file. */
export interface RankPart {
  session: Session;
  calls: PartCalls;
  /** Wall clock of its time 0, ns since the epoch; null if the file has none. */
  zeroNs: bigint | null;
  /** The first rank of the part; further processes of a report have the next ranks. */
  rank: number;
  /** Host name in its rows. */
  host: string;
}

/** Columns with session times. */
const timeColumns: ReadonlySet<string> = new Set([
  'start_ns',
  'end_ns',
  't_ns',
  'api_start_ns',
  'device_start_ns',
  'device_end_ns',
  'written_ns',
]);

/** Columns that are the same in all rows of a part. */
type Constants = Record<string, string>;

/** Maximum collectives per rank for the clock alignment: more do not change the medians. */
const maxEnds = 4096;

interface Merged {
  captures: Capture[];
  clocks: RankClockFacts[];
  /** Shift of the times of each part, ns. */
  shifts: number[];
}

/**
 * Writes the tables of all parts into one session, on one clock. All tables of a part are shifted equally, so that results within a rank
 * stay the same to the ns; `collectives`, which are compared between ranks, are also corrected for drift.
 * @param zeroNs time 0 of the session
 * @param executionId of all rows: files of ranks are one execution, whatever tool wrote each; null keeps those of the parts
 * @param isComplete whether no rank is missing
 */
export async function mergeParts(
  files: SessionFiles,
  parts: readonly RankPart[],
  {
    executionId,
    zeroNs,
    isComplete,
  }: { executionId: string | null; zeroNs: bigint | null; isComplete: boolean },
): Promise<Merged> {
  const { workbench } = files;
  const shiftOf = ({ zeroNs: partZeroNs }: RankPart) =>
    partZeroNs === null || zeroNs === null ? 0 : Number(partZeroNs - zeroNs);
  const callFiles = parts.flatMap(filesOf);
  const ranks = parts.reduce((sum, { calls }) => sum + calls.processes, 0);
  await createRankCalls(workbench, callFiles, { shiftOf, isComplete, executionId, ranks });
  const maxCalls = Math.max(
    1,
    ...parts.flatMap(({ calls }) => calls.executions.map((execution) => execution.calls / calls.processes)),
  );
  const clocks = await alignClocks(
    workbench,
    parts.map(({ rank }) => rank),
    Math.ceil(maxCalls / maxEnds),
  );
  const windows = await readWindows(workbench);
  await createNamedGroups(
    workbench,
    'SELECT execution_id, communicator, sequence, rank, start_ns + shift AS start_ns, start_ns + shift + dur_ns AS end_ns FROM part_calls WHERE named AND NOT in_pair',
    clocks,
  );
  const shifts = parts.map((part, index) => shiftOf(part) - clocks[index]!.offset_ns);
  // Lanes use all cores: several threads in each take 1.5x the time.
  await workbench.limit({ threads: 1 });
  await inLanes(parts, availableParallelism(), async (part, index) => {
    const constants = { host: part.host, ...(executionId !== null && { execution_id: executionId }) };
    await moveTables(workbench, part, { shift: shifts[index]!, constants });
    for (const file of callFiles.filter((file) => file.part === part))
      await saveCalls(workbench, file, { clock: clocks[index]!, shift: shiftOf(part), constants, ranks });
  });
  const captures: Capture[] = [];
  for (const [index, part] of parts.entries()) {
    for (const artifact of part.session.manifest.artifacts) await addArtifact(files, part, artifact);
    for (const capture of part.session.manifest.captures)
      captures.push({
        ...capture,
        capture_id: captureOf(part, capture.capture_id),
        execution_id: executionId ?? capture.execution_id,
        clock: { ...capture.clock, error_bound_ns: clocks[index]!.bound_ns },
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
      ...windowOn(windows.get(rank), offset_ns),
    })),
    shifts,
  };
}

/** rank-3; rank-3-nsys if a rank has several captures. */
const captureOf = ({ rank, session }: RankPart, id: string): string =>
  session.manifest.captures.length === 1 ? `rank-${rank}` : `rank-${rank}-${id}`;

/** Copies an artifact of a capture; artifacts of a rank's session as a whole are created again for all ranks. */
async function addArtifact(files: SessionFiles, part: RankPart, { path, kind, capture_id }: Artifact) {
  if (capture_id === null) return;
  const name = basename(path);
  const captureId = captureOf(part, capture_id);
  const from = join(part.session.folder, path);
  const linked = join(files.scratch, `${captureId}-${name}`);
  const isLinked = await link(from, linked).then(
    () => true,
    // Fails on another file system.
    () => false,
  );
  await files.addArtifact(isLinked ? linked : from, { kind, captureId, name });
}

/** SQL that adds the part's shift, rank and capture. */
function replacedColumns(table: TableName, { shift, rank }: { shift: number; rank: string }): string {
  const columns = Object.keys(tables[table].columns);
  return [
    ...columns.filter((name) => timeColumns.has(name)).map((name) => `${name} + ${shift} AS ${name}`),
    `${rank} AS rank`,
  ].join(', ');
}

/**
 * Creates `communicators` with the number of ranks, and if no rank is missing the ranks, of communicators that the calls do not describe;
 * and the view `rank_calls` with the collectives of all parts in session time. The ranks that take part in a kernel known only by name are
 * unknown: two ranks are one group; with more ranks such kernels are left out (see named-groups.ts), because replicas that never communicate run
 * the same kernels in the same order, and would be aligned with each other without a sign that it is wrong.
 */
async function createRankCalls(
  workbench: Workbench,
  files: readonly CallFile[],
  {
    shiftOf,
    isComplete,
    executionId,
    ranks,
  }: {
    shiftOf: (part: RankPart) => number;
    isComplete: boolean;
    executionId: string | null;
    ranks: number;
  },
): Promise<void> {
  if (files.length === 0) {
    await workbench.run(
      'CREATE VIEW part_calls AS SELECT NULL AS execution_id, NULL AS communicator, NULL::BIGINT AS sequence, NULL::INTEGER AS rank, NULL::BIGINT AS start_ns, NULL::BIGINT AS dur_ns, 0 AS shift, false AS named, false AS in_pair WHERE false',
    );
    await workbench.run(
      'CREATE VIEW rank_calls AS SELECT NULL::INTEGER AS rank, NULL AS communicator, NULL AS operation, NULL::BIGINT AS sequence, NULL::INTEGER AS ranks, NULL::BIGINT AS start_ns, NULL::BIGINT AS end_ns WHERE false',
    );
    return;
  }
  const partRows = files.map(
    ({ part, path, execution, knownBy }) =>
      `(${quote(path)}, ${part.rank}, ${shiftOf(part)}, '${executionId ?? execution}', '${knownBy}')`,
  );
  await workbench.run(
    `CREATE VIEW part_calls AS SELECT c.* REPLACE (first_rank + c.rank AS rank, execution AS execution_id), shift, known_by, ${isNamed} AS named, known_by = 'name' AND ${ranks <= 2} AS in_pair
     FROM read_parquet([${files.map(({ path }) => quote(path)).join(', ')}], filename = 'path') c JOIN (VALUES ${partRows.join(', ')}) p(path, first_rank, shift, execution, known_by) USING (path)`,
  );
  await workbench.run(
    `CREATE TABLE communicators AS SELECT execution_id, communicator, len(members) AS size, ${isComplete ? 'members' : 'NULL::INTEGER[] AS members'}
     FROM (${membersSql(
       `(
       SELECT * FROM part_calls SEMI JOIN (SELECT execution_id, communicator FROM part_calls WHERE ranks IS NULL AND (in_pair OR NOT named) OR peer IS NOT NULL AND known_by = 'call') USING (execution_id, communicator))`,
       'execution_id, communicator',
     )})`,
  );
  await workbench.run(
    `CREATE VIEW rank_calls AS ${withPairs(`(
       SELECT rank, concat(execution_id, ' ', communicator) AS communicator, operation, sequence, ${jobPeerSql('known_by')} AS peer, ranks, start_ns + shift AS start_ns, start_ns + shift + dur_ns AS end_ns
       FROM part_calls LEFT JOIN communicators USING (execution_id, communicator) WHERE in_pair OR NOT named)`)}`,
  );
}

/** From the first to the last collective of each rank, on its own clock. */
async function readWindows(workbench: Workbench): Promise<ReadonlyMap<number, [number, number]>> {
  const rows = await workbench.query<{ rank: number; first: number; last: number }>(
    'SELECT rank, min(start_ns)::DOUBLE AS first, max(end_ns)::DOUBLE AS last FROM rank_calls GROUP BY rank',
  );
  return new Map(rows.map(({ rank, first, last }) => [rank, [first, last]]));
}

const windowOn = (
  window: [number, number] | undefined,
  offsetNs: number,
): Pick<RankClockFacts, 'window_ns'> =>
  window === undefined ? {} : { window_ns: [window[0] - offsetNs, window[1] - offsetNs] };

/** The lowest rank in each capture's rows. */
async function readFirstRanks(
  workbench: Workbench,
  { session }: RankPart,
): Promise<ReadonlyMap<string, number>> {
  const files = Object.entries(session.manifest.tables)
    .filter(([name]) => name in tables)
    .flatMap(([, tableFiles]) => tableFiles.map(({ path }) => quote(join(session.folder, path))));
  const rows = await workbench.query<{ capture_id: string; first: number }>(
    `SELECT capture_id, min(rank) AS first FROM read_parquet([${files.join(', ')}], union_by_name = true) WHERE rank IS NOT NULL GROUP BY capture_id`,
  );
  return new Map(rows.map(({ capture_id, first }) => [capture_id, first]));
}

/** The collectives of a capture of a part. */
interface CallFile {
  part: RankPart;
  capture: string;
  path: string;
  /** The execution of the part. */
  execution: string;
  knownBy: PartCalls['executions'][number]['known_by'];
}

function filesOf(part: RankPart): CallFile[] {
  const { folder, manifest } = part.session;
  return (manifest.tables['collectives'] ?? []).flatMap(({ path, capture_id: capture }) => {
    const id = manifest.captures.find(({ capture_id }) => capture_id === capture)?.execution_id;
    const calls = part.calls.executions.find(({ execution_id }) => execution_id === id);
    return calls === undefined
      ? []
      : [
          {
            part,
            capture,
            path: join(folder, path),
            execution: calls.execution_id,
            knownBy: calls.known_by,
          },
        ];
  });
}

async function moveTables(
  workbench: Workbench,
  part: RankPart,
  { shift, constants }: { shift: number; constants: Constants },
): Promise<void> {
  const first = part.calls.processes === 1 ? null : await readFirstRanks(workbench, part);
  for (const [table, files] of Object.entries(part.session.manifest.tables)) {
    if (table === 'collectives' || !(table in tables)) continue;
    for (const { path, capture_id } of files.filter(({ rows }) => rows > 0)) {
      // Profilers number the processes that they record; for a single process the launcher's rank is used.
      const rank = first === null ? `${part.rank}` : `rank + ${part.rank - (first.get(capture_id) ?? 0)}`;
      await workbench.save(
        table as TableName,
        captureOf(part, capture_id),
        `SELECT * REPLACE (${replacedColumns(table as TableName, { shift, rank })}) FROM read_parquet(${quote(join(part.session.folder, path))})`,
        constants,
      );
    }
  }
}

/**
 * Writes the collectives of a part that are known to be of a group of ranks, in session time, corrected for the clock's offset and drift. Computes with doubles: DuckDB reads decimal
 * literals, which take four times as long as writing the table.
 */
async function saveCalls(
  workbench: Workbench,
  { part, capture, path, execution, knownBy }: CallFile,
  {
    clock: { a_ns: a, b },
    shift,
    constants,
    ranks,
  }: { clock: RankClock; shift: number; constants: Constants; ranks: number },
): Promise<void> {
  const ofExecution = (table: string) =>
    `LEFT JOIN (SELECT * EXCLUDE (execution_id) FROM ${table} WHERE execution_id = '${constants['execution_id'] ?? execution}') USING (communicator)`;
  await workbench.save(
    'collectives',
    captureOf(part, capture),
    `SELECT * REPLACE (${totalBytesSql(`'${knownBy}'`)} AS bytes, CAST(round(start_ns + ${shift} - (${a}::DOUBLE + ${b}::DOUBLE * (start_ns + ${shift}))) AS BIGINT) AS start_ns)
       FROM (${withPairs(`(
         SELECT c.* EXCLUDE (named) REPLACE (c.rank + ${part.rank} AS rank, coalesce(ranks, group_size, size) AS ranks, ${jobPeerSql(`'${knownBy}'`)} AS peer,
           CASE WHEN group_size < ${ranks} THEN concat(communicator, ' ', (c.rank + ${part.rank}) // group_size) ELSE communicator END AS communicator)
         FROM (SELECT *, ${isNamed} AS named FROM read_parquet(${quote(path)})) c ${ofExecution('communicators')} ${ofExecution('named_groups')}
         WHERE NOT named OR group_size IS NOT NULL OR ${knownBy === 'name' && ranks <= 2})`)})`,
    constants,
  );
}
