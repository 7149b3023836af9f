import { readCallNames } from '../../facts/trace/call-names.js';
import { graphLaunchesSql } from '../../facts/trace/launches.js';
import { literal, type TraceScope } from '../../facts/trace/scope.js';
import { mapsMemory, waitPurpose } from '../../model/synchronizing-calls.js';

/**
 * A host gap between two calls of a thread that is too long for a dispatch: PyTorch dispatches an operator
 * in 5 to 50 µs, profiler included (10 µs between launches of an eager decode on an H200 under nsys, 12 under Kineto).
 */
export const longHostNs = 100_000;

/** Upper limit for the model's own Python code between two launches (0.1 to 0.4 ms per place, eager decode on an H200, nsys). */
export const maxGlueNs = 1_000_000;

/** A first step longer than the median by this factor counts as unmarked warm-up. */
const firstUseRatio = 3;
/** With fewer steps, none is called unusual. */
const minInstances = 3;

/** Share of all launches from which a thread counts as launching. */
const minLaunchShare = 0.01;

/** Calls that load code onto a device: Triton, TorchInductor, NVRTC and lazy loading all use them. */
export const moduleLoads = '^(cuModuleLoad|cuLibraryLoad|cudaLibraryLoad|hipModuleLoad|nvrtc|cuLink)';
/** Ranges and operators of framework compilers: torch._dynamo, torch._inductor, Triton, torch.jit, XLA. */
export const compileRanges =
  '(dynamo|inductor|triton.*compil|compile_fx|compile_inner|_compile\\.|nvfuser|XLA.*compil)';

const notSampling = "kind <> 'sampling'";

/**
 * Tables shared by several rules, each created once: sums over names and calls, few rows each.
 * finding_kernels (kind, class, name, dtype, tile, in_graph, n, ns), finding_copies (kind, direction, memory, n, bytes,
 * largest_bytes, dur_ns, ns), finding_graphs (kind, graph_launches), finding_waits
 * (kind, window_id, cause, name, start_ns, dur_ns, tid, op_id, direction, bytes, correlation), finding_wait_costs (kind, held_ns), finding_long_hosts (kind, stage_id,
 * start_ns, ns, cause, tid, inside: after the step's first activity, operator: the enclosing operator that had not launched yet,
 * null outside operators or if none were recorded).
 */
export async function makeFindingTables(scope: TraceScope): Promise<void> {
  const { database } = scope;
  const [unmarked] = await database.query<{ n: number }>(
    "SELECT count(*) AS n FROM windows WHERE kind = 'outside'",
  );
  const isUnmarked = (unmarked?.n ?? 0) > 0;
  await scope.need('kernel_cells', 'window_idle', 'instances');
  await database.query(
    `CREATE TEMP TABLE finding_kernels AS
     SELECT step_kind AS kind, coalesce(class, 'other') AS class, name, dtype, tile, in_graph, sum(kernels)::DOUBLE AS n, coalesce(sum(exclusive_ns), 0)::DOUBLE AS ns
     FROM kernel_cells WHERE step_kind IS NOT NULL GROUP BY ALL`,
  );
  const [cells] = await database.query<{ graphs: number }>(
    "SELECT count_if(in_graph OR class = 'graph') AS graphs FROM kernel_cells",
  );
  await database.query(
    `CREATE TEMP TABLE finding_graphs AS ${graphLaunchesSql} ${(cells?.graphs ?? 0) > 0 ? '' : 'LIMIT 0'}`,
  );
  await database.query(
    `CREATE TEMP TABLE finding_copies AS
     SELECT step_kind AS kind, kind AS direction, CASE WHEN kind = 'HtoD' THEN src_kind WHEN kind = 'DtoH' THEN dst_kind END AS memory, count(*)::DOUBLE AS n,
       sum(bytes)::DOUBLE AS bytes, max(bytes)::DOUBLE AS largest_bytes, sum(dur_ns)::DOUBLE AS dur_ns, sum(coalesce(exclusive_ns, 0))::DOUBLE AS ns
     FROM phase_copies WHERE kind IS NOT NULL AND step_kind IS NOT NULL GROUP BY ALL`,
  );
  const calls = await readCallNames(scope);
  await makeWaits(scope, isUnmarked, calls);
  await makeWaitCosts(scope);
  await makeLongHosts(scope, isUnmarked, calls);
}

/**
 * Host events by the step range in which they start, on the host clock, independent of the windows' clock. The range of a step
 * that another one follows ends at the start of that one.
 */
function inWindows(events: string, columns: string, unmarked: boolean): string {
  if (unmarked) return `SELECT 'outside' AS kind, 0 AS window_id, ${columns} FROM (${events})`;
  return `WITH w AS (SELECT stage_id AS window_id, kind, start_ns AS w_start, host_end_ns AS w_end FROM instances WHERE ${notSampling})
    SELECT kind, window_id, ${columns} FROM (${events}) e ASOF JOIN w ON e.start_ns >= w.w_start WHERE e.start_ns < w_end`;
}

async function makeWaits(
  { database }: TraceScope,
  unmarked: boolean,
  names: readonly string[],
): Promise<void> {
  const waitingNames = names.flatMap((name) => {
    const cause = waitPurpose(name) ?? (mapsMemory(name) ? 'allocator' : null);
    return cause === null ? [] : [{ name, cause }];
  });
  const causeOf = waitingNames.map(({ name, cause }) => `WHEN ${literal(name)} THEN '${cause}'`);
  const calls = `SELECT ${causeOf.length > 0 ? `CASE name ${causeOf.join(' ')} END` : 'NULL::VARCHAR'} AS cause, name, start_ns, dur_ns, tid, op_id,
         NULL::VARCHAR AS direction, NULL::BIGINT AS bytes, correlation
       FROM rank_api WHERE ${inList(waitingNames.map(({ name }) => name))}`;
  // A copy from or to pageable memory blocks: the host waits inside cudaMemcpyAsync until the memory may be reused.
  await database.query(
    `CREATE TEMP TABLE finding_waits AS ${inWindows(
      `${calls}
       UNION ALL BY NAME
       SELECT 'copy' AS cause, 'pageable copy' AS name, api_start_ns AS start_ns, api_dur_ns AS dur_ns, tid, op_id, kind AS direction, bytes, correlation
       FROM rank_copies WHERE api_start_ns IS NOT NULL
         AND ((kind = 'DtoH' AND dst_kind = 'pageable') OR (kind = 'HtoD' AND src_kind = 'pageable'))`,
      'cause, name, start_ns, dur_ns, tid, op_id, direction, bytes, correlation',
      unmarked,
    )}`,
  );
  await removeOtherThreads(database);
  await removeStalls(database);
  // A blocking copy is in both lists: keep the row with the byte count.
  await database.query(
    `DELETE FROM finding_waits w WHERE w.bytes IS NULL AND w.cause = 'copy'
     AND EXISTS (SELECT 1 FROM finding_waits o WHERE o.bytes IS NOT NULL AND o.correlation = w.correlation AND o.start_ns = w.start_ns)`,
  );
  await assignWaitsToCopies(database);
}

/** Time from a copy to the call that waits for it, in which no kernel is launched. */
const maxCopyToWaitNs = 20_000;

/** A blocking copy to the device is a copy and a wait for it; one to the host waits for the value. */
async function assignWaitsToCopies(database: TraceScope['database']): Promise<void> {
  await database.query(
    `UPDATE finding_waits SET cause = 'copy', direction = 'HtoD' WHERE cause = 'synchronize' AND (start_ns, tid) IN (
       SELECT (w.start_ns, w.tid) FROM finding_waits w ASOF JOIN (SELECT tid, kind, api_start_ns, api_dur_ns FROM rank_copies WHERE api_start_ns IS NOT NULL) c
         ON c.tid = w.tid AND c.api_start_ns < w.start_ns
       WHERE c.kind = 'HtoD' AND w.start_ns - (c.api_start_ns + c.api_dur_ns) < ${maxCopyToWaitNs})`,
  );
  await database.query(
    `UPDATE finding_waits SET cause = 'read' WHERE cause = 'copy' AND (direction = 'DtoH'
       OR (start_ns, tid) IN (SELECT (api_start_ns, tid) FROM rank_copies WHERE kind = 'DtoH' AND api_start_ns IS NOT NULL))`,
  );
}

/** Minimum waits of a step with launches between them. The cost of each is visible in the launches around it. */
const minWaits = 2;
/** Launches before a wait that may compute the value it waits for: a comparison, its reduction, a conversion. */
const valueLaunches = 3;
/** Share of a kernel's launches at one distance before waits, above which it counts as computing their value. */
const minBeforeWaitShare = 0.75;

/**
 * Host time for reading a value, without the wait itself: the pause between the launches around the wait minus the
 * usual pause of such a step, plus launches right before the wait of kernels that only run there, because they compute
 * the value. Pauses count up to the length of a long host gap, which has a separate cause.
 */
async function makeWaitCosts({ database }: TraceScope): Promise<void> {
  await database.query(
    `CREATE TEMP TABLE finding_wait_costs AS
     WITH several AS (SELECT kind FROM finding_waits WHERE cause IN ('synchronize', 'read') GROUP BY kind HAVING count(*) >= ${minWaits} * count(DISTINCT window_id)),
     waits AS (SELECT kind, window_id, tid, start_ns, dur_ns FROM finding_waits JOIN several USING (kind) WHERE cause IN ('synchronize', 'read')),
     steps AS (SELECT DISTINCT kind, window_id FROM waits),
     calls AS (SELECT s.kind, s.window_id, k.tid, k.api_start_ns AS start_ns, max(k.api_start_ns + k.api_dur_ns) AS end_ns, any_value(k.name) AS name,
         any_value(k.class) AS class
       FROM rank_kernels k JOIN stages_in_phases p USING (stage_id) JOIN steps s ON s.window_id = p.step_id WHERE k.api_start_ns IS NOT NULL GROUP BY ALL),
     pauses AS (SELECT *, end_ns AS from_ns, row_number() OVER thread AS nth, lead(start_ns) OVER thread AS until_ns, start_ns - lag(end_ns) OVER thread AS before_ns
       FROM calls WINDOW thread AS (PARTITION BY window_id, tid ORDER BY start_ns)),
     waits_in_pauses AS (SELECT p.window_id, p.tid, p.from_ns, sum(w.dur_ns) AS waited_ns FROM waits w
       ASOF JOIN pauses p ON p.window_id = w.window_id AND p.tid = w.tid AND w.start_ns >= p.from_ns WHERE w.start_ns < p.until_ns GROUP BY ALL),
     around AS (SELECT p.*, until_ns - from_ns AS pause_ns, waited_ns,
         min(nth) FILTER (waited_ns IS NOT NULL) OVER (PARTITION BY window_id, tid ORDER BY nth ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS wait_nth
       FROM pauses p LEFT JOIN waits_in_pauses USING (window_id, tid, from_ns)),
     usual AS (SELECT kind, median(pause_ns) AS usual_ns FROM around WHERE waited_ns IS NULL AND pause_ns IS NOT NULL GROUP BY kind),
     launched AS (SELECT kind, name, count(*) AS n FROM around GROUP BY ALL),
     values AS (SELECT kind, name, wait_nth - nth AS distance FROM around JOIN launched l USING (kind, name)
       WHERE wait_nth - nth < ${valueLaunches} AND class NOT IN ('gemm', 'attention', 'communication')
       GROUP BY kind, name, distance, l.n HAVING count(*) >= ${minBeforeWaitShare} * l.n),
     chain AS (SELECT a.*, bool_and(v.name IS NOT NULL) OVER (PARTITION BY window_id, tid, wait_nth ORDER BY nth DESC) AS computes_value
       FROM around a LEFT JOIN values v ON v.kind = a.kind AND v.name = a.name AND v.distance = wait_nth - nth WHERE wait_nth IS NOT NULL)
     SELECT kind, sum(CASE WHEN waited_ns IS NULL THEN 0 ELSE least(${longHostNs}, greatest(0, pause_ns - waited_ns - usual_ns)) END
              + CASE WHEN computes_value THEN end_ns - start_ns + least(${longHostNs}, coalesce(before_ns, 0)) ELSE 0 END)::DOUBLE AS held_ns
     FROM chain JOIN usual USING (kind) GROUP BY kind`,
  );
}

/** Waits of threads that launch nothing (a watchdog, for example) do not delay the device. */
async function removeOtherThreads(database: TraceScope['database']): Promise<void> {
  const threads = await database.query<{ tid: number | null }>('SELECT DISTINCT tid FROM finding_waits');
  if (threads.length < 2) return;
  await database.query(
    `DELETE FROM finding_waits WHERE tid NOT IN (
       SELECT tid FROM rank_kernels WHERE tid IS NOT NULL GROUP BY tid HAVING count(*) >= ${minLaunchShare} * (SELECT count(*) FROM rank_kernels))
     AND EXISTS (SELECT 1 FROM rank_kernels WHERE tid IS NOT NULL)`,
  );
}

/** Shorter calls may exceed the device's work by the duration of the call itself. */
const minStallNs = 1_000_000;
/** Share of a call in which the device is idle. */
const minIdleShare = 0.9;

/**
 * A call that blocks while the device is idle waits for the driver (the first of its kind, a profiler that starts), not
 * for the device.
 */
async function removeStalls(database: TraceScope['database']): Promise<void> {
  await database.query(
    `DELETE FROM finding_waits WHERE cause <> 'allocator' AND dur_ns >= ${minStallNs} AND (start_ns, tid) IN (
       SELECT (w.start_ns, w.tid) FROM finding_waits w JOIN rank_gaps g ON g.start_ns < w.start_ns + w.dur_ns AND g.start_ns + g.dur_ns > w.start_ns
       WHERE w.dur_ns >= ${minStallNs} GROUP BY w.start_ns, w.tid, w.dur_ns
       HAVING sum(least(g.start_ns + g.dur_ns, w.start_ns + w.dur_ns) - greatest(g.start_ns, w.start_ns)) >= ${minIdleShare} * w.dur_ns)`,
  );
}

/** SQL test of `name` that can use the file's statistics. */
export const inList = (names: readonly string[]): string =>
  names.length === 0 ? 'false' : `name IN (${names.map((name) => literal(name)).join(', ')})`;

/** Long parts of gaps in which the host was in no API call, clipped to the window. */
async function makeLongHosts(
  { database }: TraceScope,
  unmarked: boolean,
  names: readonly string[],
): Promise<void> {
  const loads = names.filter((name) => new RegExp(moduleLoads).test(name));
  const gaps = `SELECT start_ns + coalesce(synchronization_ns, 0) AS h_start, start_ns + coalesce(synchronization_ns, 0) + host_ns AS h_end, tid,
      CASE WHEN o.begin_ns < start_ns + coalesce(synchronization_ns, 0) + host_ns / 2 THEN o.name END AS operator
    FROM rank_gaps g LEFT JOIN (SELECT op_id, name, start_ns AS begin_ns FROM rank_ops) o ON o.op_id = g.before_op_id WHERE host_ns > ${longHostNs}`;
  const clipped = unmarked
    ? `SELECT 'outside' AS kind, 0 AS stage_id, h_start AS start_ns, h_end - h_start AS ns, tid, operator FROM (${gaps})`
    : `SELECT w.kind, w.stage_id, greatest(h_start, w.start_ns) AS start_ns, least(h_end, w.end_ns) - greatest(h_start, w.start_ns) AS ns, g.tid, g.operator
       FROM (${gaps}) g JOIN windows w ON h_start < w.end_ns AND h_end > w.start_ns WHERE w.${notSampling}`;
  await database.query(
    `CREATE TEMP TABLE finding_long_hosts AS
     WITH gap AS (SELECT * FROM (${clipped}) WHERE ns > ${longHostNs}),
     -- A capture has no gap before its first activity: its host time there is added and counts only where the host compiled.
     edge AS (SELECT w.kind, w.stage_id, w.start_ns, i.start_up::BIGINT AS ns, NULL::BIGINT AS tid, NULL::VARCHAR AS operator FROM window_idle i JOIN windows w USING (stage_id)
              WHERE i.start_up > ${longHostNs} AND w.kind <> 'outside'),
     long AS (SELECT * FROM gap UNION ALL BY NAME SELECT * FROM edge),
     loads AS (SELECT start_ns AS at_ns FROM rank_api WHERE ${inList(loads)}),
     compiling AS (SELECT start_ns, end_ns FROM (
         SELECT start_ns, start_ns + dur_ns AS end_ns, name FROM rank_ops WHERE dur_ns > ${longHostNs}
         UNION ALL SELECT start_ns, end_ns, raw_name FROM phase_stages WHERE kind = 'other' AND end_ns > start_ns + ${longHostNs})
       WHERE regexp_matches(name, '${compileRanges}', 'i')),
     marked AS (
       SELECT DISTINCT l.kind, l.stage_id, l.start_ns FROM long l JOIN loads ON at_ns BETWEEN l.start_ns AND l.start_ns + l.ns + ${longHostNs}
       UNION SELECT DISTINCT l.kind, l.stage_id, l.start_ns FROM long l JOIN compiling c ON c.start_ns < l.start_ns + l.ns AND c.end_ns > l.start_ns),
     -- Leading steps far above the usual one run for the first time: kernels are loaded, libraries choose algorithms.
     ordered AS (
       SELECT kind, stage_id, row_number() OVER (PARTITION BY kind ORDER BY start_ns) AS nth,
         count(*) OVER (PARTITION BY kind) AS among, end_ns - start_ns > ${firstUseRatio} * median(end_ns - start_ns) OVER (PARTITION BY kind) AS slow
       FROM windows WHERE ${notSampling}),
     first_usual AS (SELECT kind, coalesce(min(nth) FILTER (NOT slow), 1) AS usual FROM ordered GROUP BY kind),
     first AS (SELECT stage_id FROM ordered JOIN first_usual USING (kind) WHERE nth < usual AND among >= ${minInstances}),
     -- An operator that takes long in the first step and never as long again also runs for the first time there.
     later AS (SELECT kind, operator, max(ns) FILTER (nth > 1) AS ns FROM long JOIN ordered USING (kind, stage_id) GROUP BY kind, operator),
     once AS (
       SELECT l.kind, l.stage_id, l.start_ns FROM long l JOIN ordered o USING (kind, stage_id) JOIN later t USING (kind, operator)
       WHERE o.nth = 1 AND among >= ${minInstances} AND l.ns > ${firstUseRatio} * coalesce(t.ns, ${longHostNs}))
     SELECT DISTINCT l.*, coalesce(l.start_ns > i.device_start_ns, false) AS inside, CASE WHEN f.stage_id IS NOT NULL OR e.start_ns IS NOT NULL THEN 'first_use' WHEN m.start_ns IS NULL THEN 'host' ELSE 'compile' END AS cause
     FROM long l LEFT JOIN marked m USING (kind, stage_id, start_ns) LEFT JOIN first f USING (stage_id) LEFT JOIN once e USING (kind, stage_id, start_ns)
     LEFT JOIN (SELECT stage_id, device_start_ns FROM instances) i USING (stage_id)
     WHERE m.start_ns IS NOT NULL OR NOT EXISTS (SELECT 1 FROM edge e WHERE e.stage_id = l.stage_id AND e.start_ns = l.start_ns AND e.ns = l.ns)`,
  );
}
