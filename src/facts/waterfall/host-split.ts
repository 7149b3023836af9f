import type { WaterfallBar } from '../../model/documents/explain.js';
import { libraryRange } from '../../model/library-ranges.js';
import { isSynchronizing } from '../../model/synchronizing-calls.js';
import { readCallNames } from '../trace/call-names.js';
import { literal, type TraceScope } from '../trace/scope.js';

type Parts = WaterfallBar['parts'];

/** Which gaps are counted: all, or in a large capture those of its first instances. */
export interface CountedGaps {
  /** Only gaps and calls that start before this time. */
  untilNs: number;
  /** Instances per group that end by then. */
  instances: Map<string, number>;
}

/** With more gaps, the first instances of each kind give the same mean. */
const maxGaps = 1_000_000;
const maxInstances = 256;

export async function readCountedGaps(scope: TraceScope, unmarked: boolean): Promise<CountedGaps> {
  const { database } = scope;
  await scope.need('windows', 'spans');
  const [gaps] = await database.query<{ n: number }>('SELECT count(*) AS n FROM rank_gaps');
  const isComplete = unmarked || (gaps?.n ?? 0) <= maxGaps;
  const [until] = isComplete
    ? []
    : await database.query<{ ns: number }>(
        `SELECT max(end_ns) AS ns FROM (SELECT end_ns, row_number() OVER (PARTITION BY kind ORDER BY start_ns) AS nth FROM windows WHERE kind IN ('decode', 'mixed'))
         WHERE nth <= ${maxInstances}`,
      );
  const untilNs = until?.ns ?? Number.MAX_SAFE_INTEGER;
  return { untilNs, instances: await instancesOf(database, untilNs) };
}

/** Known parts of host time in gaps, by window and by group of stages. */
export interface HostSplit {
  /** Share of a window's host time inside framework operators; null if no operators were recorded, or too many. */
  framework: Map<number, number> | null;
  /** Per mean instance. Outside operators: by the outermost operator that follows, else by innermost range. */
  parts: Map<string, Parts>;
  /** Inside operators, by the outermost one; empty if `framework` is null. */
  insideParts: Map<string, Parts>;
}

/** With more operators, finding the outermost one is too slow. */
const maxOps = 2_000_000;
const maxParts = 6;
const notPython = "op_type IS DISTINCT FROM 'python_function'";

/**
 * SQL of (step_id, root_name, host_ns, inside_ns, n): host time of a step's gaps by the outermost operator that
 * launched the activity after the gap, and the part for which the thread was inside that operator.
 *
 * Follows parents, at most five, from the launching operator to the outermost one that is not a Python function. It joins
 * ids and looks up names last, because six tables with names take a gigabyte for a large trace.
 */
export function hostGapsSql(): string {
  const levels = [1, 2, 3, 4, 5];
  const joins = levels
    .map((n) => `LEFT JOIN parents o${n} ON o${n}.op_id = o${n - 1}.parent_op_id`)
    .join(' ');
  const outermost = [...levels.toReversed(), 0].map((n) => `o${n}.op_id`).join(', ');
  return `WITH op AS (SELECT op_id, parent_op_id FROM rank_ops WHERE ${notPython}),
    parents AS (SELECT * FROM op SEMI JOIN (SELECT parent_op_id AS op_id FROM op) p USING (op_id)),
    launching AS (SELECT * FROM op SEMI JOIN (SELECT before_op_id AS op_id FROM rank_gaps WHERE host_ns > 0) g USING (op_id)),
    roots AS (SELECT o0.op_id, coalesce(${outermost}) AS root_id FROM launching o0 ${joins}),
    root AS (SELECT c.op_id, r.start_ns AS root_ns, r.name AS root_name FROM roots c JOIN rank_ops r ON r.op_id = c.root_id)
    SELECT step_id, root_name, sum(g.host_ns)::DOUBLE AS host_ns,
      sum(coalesce(greatest(0, least(g.host_ns, g.start_ns + g.synchronization_ns + g.host_ns - root_ns)), 0))::DOUBLE AS inside_ns, count(*) AS n
    FROM phase_gaps g LEFT JOIN root ON root.op_id = g.before_op_id WHERE g.host_ns > 0 AND step_id IS NOT NULL GROUP BY ALL`;
}

export async function hostSplit(
  scope: TraceScope,
  unmarked: boolean,
  counted: CountedGaps,
): Promise<HostSplit> {
  const { database } = scope;
  const [ops] = await database.query<{ n: number }>(`SELECT count(*) AS n FROM rank_ops WHERE ${notPython}`);
  const useOps = (ops?.n ?? 0) > 0 && (ops?.n ?? 0) <= maxOps;
  const groupOf = 'SELECT stage_id AS step_id, grp FROM members';
  if (useOps) {
    await scope.need('host_gaps');
    const shares = await database.query<{ stage_id: number; share: number | null }>(
      'SELECT step_id AS stage_id, sum(inside_ns) / nullif(sum(host_ns), 0) AS share FROM host_gaps GROUP BY 1',
    );
    const rows = await database.query<PartRow & { inside: number }>(
      `SELECT grp, coalesce(root_name, 'no operator') AS label, sum(host_ns - inside_ns)::DOUBLE AS ns, sum(inside_ns)::DOUBLE AS inside, sum(n)::BIGINT AS n
       FROM host_gaps JOIN (${groupOf}) USING (step_id) GROUP BY ALL ORDER BY ns DESC`,
    );
    const framework = new Map(shares.map(({ stage_id, share }) => [stage_id, share ?? 0]));
    const insideRows = rows.map((row) => ({ ...row, ns: row.inside })).toSorted((a, b) => b.ns - a.ns);
    const before = rows.map((row) => ({ ...row, label: `before ${row.label}` }));
    const instances = await instancesOf(database, Number.MAX_SAFE_INTEGER);
    return { framework, parts: byGroup(before, instances), insideParts: byGroup(insideRows, instances) };
  }
  if (unmarked) return { framework: null, parts: new Map(), insideParts: new Map() };
  // Ranges named by the program, inside the phases, at the time of the launch that ends the gap.
  const rows = await database.query<PartRow>(
    `SELECT m.grp, s.raw_name AS label, sum(g.ns) AS ns, sum(g.n)::DOUBLE AS n
     FROM (SELECT stage_id, sum(host_ns)::DOUBLE AS ns, count(*) AS n FROM rank_gaps WHERE host_ns > 0 AND start_ns < ${counted.untilNs} GROUP BY stage_id) g
     JOIN phase_stages s USING (stage_id) JOIN members m ON m.stage_id = s.step_id
     WHERE s.stage_id <> s.step_id AND s.kind = 'other' AND s.raw_name IS NOT NULL GROUP BY ALL
     HAVING NOT regexp_matches(trim(s.raw_name), '^${libraryRange}', 'i') ORDER BY ns DESC`,
  );
  return { framework: null, parts: byGroup(rows, counted.instances), insideParts: new Map() };
}

interface PartRow {
  grp: string;
  label: string;
  ns: number;
  n: number;
}

/** Number of instances per group that end by `untilNs`. */
async function instancesOf(database: TraceScope['database'], untilNs: number): Promise<Map<string, number>> {
  const groups = await database.query<{ grp: string; n: number }>(
    `SELECT grp, count(*) AS n FROM spans WHERE end_ns <= ${untilNs} GROUP BY grp`,
  );
  return new Map(groups.map(({ grp, n }) => [grp, n]));
}

/** The largest parts per mean instance, by group. */
function byGroup(rows: readonly PartRow[], instances: ReadonlyMap<string, number>): Map<string, Parts> {
  const partsByGroup = new Map<string, Parts>();
  for (const { grp, label, ns, n } of rows) {
    const groupParts = partsByGroup.get(grp) ?? [];
    if (groupParts.length < maxParts && ns > 0) {
      const divisor = instances.get(grp) ?? 1;
      groupParts.push({ label, ms: ns / divisor / 1e6, count: n / divisor });
    }
    partsByGroup.set(grp, groupParts);
  }
  return partsByGroup;
}

/**
 * Host waiting time by call, per mean instance: the parts of the bar, so only what is within the windows of its steps. A gap's waits are taken to
 * be at its start; they count for the last synchronizing call that started before their end.
 */
export async function waitingParts(
  scope: TraceScope,
  unmarked: boolean,
  counted: CountedGaps,
): Promise<Map<string, Parts>> {
  const calls = (await readCallNames(scope)).filter(isSynchronizing).map(literal);
  const rows = await scope.database.query<PartRow>(
    `WITH call AS (SELECT start_ns AS call_ns, name FROM rank_api WHERE name IN (${calls.join(', ') || 'NULL'}) AND start_ns < ${counted.untilNs}),
     waits AS (SELECT start_ns, start_ns + synchronization_ns AS until_ns FROM rank_gaps WHERE synchronization_ns > 0 AND start_ns < ${counted.untilNs})
     SELECT ${unmarked ? "'outside'" : 'm.grp'} AS grp, coalesce(name, 'unknown call') AS label,
            sum(least(until_ns, w.end_ns) - greatest(waits.start_ns, w.start_ns))::DOUBLE AS ns, count(*) AS n
     FROM waits ASOF LEFT JOIN call ON waits.until_ns > call.call_ns JOIN windows w ON waits.until_ns > w.start_ns AND waits.start_ns < w.end_ns
     ${unmarked ? '' : 'JOIN members m ON m.stage_id = w.stage_id'} GROUP BY ALL ORDER BY ns DESC`,
  );
  return byGroup(rows, counted.instances);
}
