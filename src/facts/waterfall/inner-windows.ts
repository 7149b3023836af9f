import { libraryRange } from '../../model/library-ranges.js';
import type { TraceSource } from '../../model/documents/trace.js';
import { literal, type TraceScope } from '../trace/scope.js';
import { rangeClock, windowClocks } from '../trace/windows.js';
import type { StageGroup } from './stage-group.js';

/** Ranges inside or around steps: sampling, and ranges named by the program. */
export interface InnerGroup extends StageGroup {
  level: 'inner';
  /** Instances that start later are not analyzed; null if all are. */
  lastStartNs: number | null;
  /** Number of instances, analyzed or not. */
  total: number;
  /** The name that all instances share; null if numbers in it differ. */
  exactName: string | null;
}

/** Number of names with a waterfall, those with the most time. */
const maxNames = 8;
/** Minimum share of the capture's time. */
const minShare = 0.01;
/** With more kernels, the first instances give the same mean. */
const maxKernelsSwept = 50_000;
/** With more kernels in the capture, even skipping those outside the ranges takes a second. */
const maxKernelsSkipped = 1_000_000;

/**
 * SQL condition of ranges that the program did not name: operators that PyTorch marks (emit_nvtx), steps of profilers and hooks, and
 * libraries.
 */
const notStages = `raw_name LIKE 'aten::%' OR contains(raw_name, ', op_id = ') OR raw_name LIKE 'ProfilerStep%' OR raw_name LIKE 'inferscope:other:%' OR regexp_matches(trim(raw_name), '^${libraryRange}', 'i')`;

/** Name with # for numbers, which count instances: layer 3, request 17. */
const unnumberedName = "regexp_replace(trim(raw_name), '[0-9]+', '#', 'g')";

/**
 * Ranges of the focused rank, without the phases of phase_stages: joining those takes longer than the rest of the
 * query.
 */
const rangesSql = ({ attribution, focus }: TraceSource): string =>
  `SELECT stage_id, kind, raw_name, step_index, pid, tid, start_ns, end_ns, device_start_ns, device_end_ns
     FROM stages WHERE execution_id = ${literal(attribution.execution_id)} AND capture_id = ${literal(attribution.capture_id)}
       AND rank IS NOT DISTINCT FROM ${focus.rank ?? 'NULL'} AND kind IN ('other', 'sampling') AND raw_name IS NOT NULL AND confidence IS NULL AND end_ns > start_ns
       AND stage_id NOT IN (SELECT stage_id FROM stages_in_phases WHERE kind IN ('warmup', 'load'))`;

interface NameRow {
  grp: string;
  names: number;
  raw_name: string;
  n: number;
  total_ns: number;
  device_after: number;
  no_launch: number;
  first_ns: number;
  last_ns: number;
}

const groupsOf = new WeakMap<TraceScope, Promise<InnerGroup[]>>();

export function innerGroups(scope: TraceScope): Promise<InnerGroup[]> {
  const groups = groupsOf.get(scope) ?? readGroups(scope);
  groupsOf.set(scope, groups);
  return groups;
}

async function readGroups(scope: TraceScope): Promise<InnerGroup[]> {
  const { database, source } = scope;
  const captureNs = Math.max(1, source.end_ns - source.start_ns);
  const rows = await database.query<NameRow>(
    `WITH by_name AS (
       SELECT kind, raw_name, count(*) AS n, sum(end_ns - start_ns)::DOUBLE AS total_ns, count_if(device_end_ns > end_ns) AS device_after, count_if(device_start_ns IS NULL) AS no_launch,
         min(start_ns) AS first_ns, max(start_ns) AS last_ns
       FROM (${rangesSql(source)}) GROUP BY kind, raw_name)
     SELECT CASE WHEN kind = 'sampling' THEN 'sampling' ELSE ${unnumberedName} END AS grp, count(*) AS names, any_value(raw_name) AS raw_name, sum(n)::DOUBLE AS n,
       sum(total_ns) AS total_ns, sum(device_after)::DOUBLE AS device_after, sum(no_launch)::DOUBLE AS no_launch, min(first_ns) AS first_ns, max(last_ns) AS last_ns
     FROM by_name WHERE kind = 'sampling' OR NOT (${notStages}) GROUP BY grp ORDER BY total_ns DESC, grp`,
  );
  const sampling = (await windowClocks(scope)).find(({ kind }) => kind === 'sampling');
  const chosen = [
    ...rows
      .filter(({ grp, total_ns }) => grp !== 'sampling' && total_ns >= minShare * captureNs)
      .slice(0, maxNames),
    ...rows.filter(({ grp }) => sampling && grp === 'sampling'),
  ];
  if (chosen.length === 0) return [];
  const [kernels] = await database.query<{ n: number }>('SELECT count(*) AS n FROM rank_kernels');
  const kernelCount = kernels?.n ?? 0;
  return chosen.map((row) => {
    const kernelsInside =
      kernelCount > maxKernelsSkipped ? kernelCount : kernelCount * Math.min(1, row.total_ns / captureNs);
    const share = Math.min(1, maxKernelsSwept / Math.max(1, kernelsInside));
    const isSampling = row.grp === 'sampling';
    return {
      ...(isSampling
        ? {
            key: 'sampling',
            kind: 'sampling',
            name: null,
            clock: sampling!.clock,
            clockWhy: sampling!.clockWhy,
          }
        : {
            key: `other ${row.grp}`,
            kind: 'other',
            name: row.names === 1 ? row.raw_name.trim() : row.grp,
            ...rangeClock(row, 'instance'),
          }),
      level: 'inner',
      lastStartNs: share === 1 ? null : Math.floor(row.first_ns + share * (row.last_ns - row.first_ns)),
      exactName: row.names === 1 ? row.raw_name : null,
      total: row.n,
    };
  });
}

/** Ranges of one group. If a name is nested in itself, only the outermost range. */
function rangesOf({ key, lastStartNs, exactName }: InnerGroup, source: TraceSource): string {
  const rangeCondition =
    exactName === null
      ? `kind = 'other' AND ${unnumberedName} = ${literal(key.slice('other '.length))} AND NOT (${notStages})`
      : `kind = 'other' AND raw_name = ${literal(exactName)}`;
  const until = lastStartNs === null ? '' : ` AND start_ns <= ${lastStartNs}`;
  return `SELECT * FROM (${rangesSql(source)}) WHERE ${rangeCondition}${until}
     QUALIFY start_ns >= coalesce(max(end_ns) OVER (PARTITION BY pid, tid ORDER BY start_ns, stage_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), start_ns)`;
}

export async function allInnerWindowsSql(scope: TraceScope): Promise<string> {
  const groups = await innerGroups(scope);
  if (groups.length > 0)
    return groups.map((group) => innerWindowsSql(group, scope.source)).join(' UNION ALL ');
  return "SELECT '' AS grp, NULL::BIGINT AS stage_id, '' AS label, NULL::BIGINT AS start_ns, NULL::BIGINT AS end_ns, NULL::BIGINT AS host_ns WHERE false";
}

/**
 * SQL of (grp, stage_id, label, start_ns, end_ns, host_ns) of a group. host_ns is the host's start if the window is on
 * the host clock: work launched before it belongs to other stages.
 */
function innerWindowsSql(group: InnerGroup, source: TraceSource): string {
  const { key, clock, kind, lastStartNs } = group;
  if (kind === 'sampling')
    return `SELECT 'sampling' AS grp, stage_id, coalesce('sampling ' || step_index, raw_name) AS label, start_ns, end_ns, ${clock === 'host' ? 'start_ns' : 'NULL::BIGINT'} AS host_ns
     FROM windows WHERE kind = 'sampling'${lastStartNs === null ? '' : ` AND start_ns <= ${lastStartNs}`}`;
  const times =
    clock === 'device'
      ? 'device_start_ns AS start_ns, device_end_ns AS end_ns, NULL::BIGINT AS host_ns'
      : 'start_ns, end_ns, start_ns AS host_ns';
  return `SELECT ${literal(key)} AS grp, stage_id, raw_name AS label, ${times} FROM (${rangesOf(group, source)})`;
}
