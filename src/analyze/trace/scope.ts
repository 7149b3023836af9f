import type { Capture, ManifestData } from '../../model/manifest.js';
import type { TraceSource } from '../../model/documents/trace.js';
import { InferscopeError } from '../../model/errors.js';
import type { SessionDatabase } from '../../session/query.js';
import { makeKernelStreams } from './kernel-streams.js';

/** One rank on one device of one capture of one execution: what every analysis of a timeline looks at. */
export interface TraceScope {
  database: SessionDatabase;
  source: TraceSource;
}

export interface ScopeOptions {
  rank?: number;
  device?: number;
}

interface KernelCount {
  execution_id: string;
  capture_id: string;
  rank: number | null;
  device: number | null;
  kernels: number;
  kernel_ns: number;
  start_ns: number;
  end_ns: number;
}

/** SQL string literal; ids come from the manifest. */
export const literal = (value: string | number | null): string =>
  value === null ? 'NULL' : typeof value === 'number' ? String(value) : `'${value.replaceAll("'", "''")}'`;

/** nsys records with the least overhead, so its timeline is taken before that of a framework's profiler. */
const preferredTools = ['nsys', 'kineto', 'torch'];

function toolRank({ tool, importer }: Capture): number {
  const at = preferredTools.findIndex((name) => importer.includes(name) || tool.name.includes(name));
  return at === -1 ? preferredTools.length : at;
}

/**
 * Chooses what is analysed and makes the views the analyses read: `kernel_streams`, `phase_of` (stage_id → kind, phase_id, step_id),
 * and `focus_kernels`, `focus_copies`, `focus_gaps`, `focus_stages` (rank and device), `focus_api`, `focus_ops` (rank).
 * Each but `focus_stages` has a twin without the phase, `own_kernels` and so on, for questions that ask for none: the
 * database cannot know that the join adds no rows, and would make it for nothing.
 *
 * A phase inside a warm-up or marked as one is of kind warmup; what is in no phase is `outside`. step_id is the phase,
 * or the prefill or decode step around it: sampling inside a step belongs to the step.
 * @throws E_USAGE when the session has no kernels, or none of the rank and device asked for
 */
export async function traceScope(
  database: SessionDatabase,
  manifest: ManifestData,
  options: ScopeOptions = {},
): Promise<TraceScope> {
  await makeKernelStreams(database);
  const counts = await database.query<KernelCount>(
    `SELECT execution_id, capture_id, rank, device, sum(kernels)::BIGINT AS kernels, sum(dur_ns) AS kernel_ns,
            min(start_ns) AS start_ns, max(end_ns) AS end_ns
     FROM kernel_streams GROUP BY ALL ORDER BY ALL`,
  );
  const gpuUsed = counts.length > 0;
  if (!gpuUsed) counts.push(...(await operatorCounts(database)));
  if (counts.length === 0) {
    throw new InferscopeError('E_USAGE', {
      what: `session ${manifest.id} has no GPU timeline`,
      why: 'Its captures hold no device kernels.',
      fix: 'Record one: inferscope run --evaluator nsys -- command, or inferscope import FILE.',
    });
  }
  const source = { ...(await chooseSource(database, manifest, counts, options)), gpu_used: gpuUsed };
  await createViews(database, source);
  return { database, source };
}

/** A program that uses no GPU still has operators under PyTorch's profiler. */
async function operatorCounts(database: SessionDatabase): Promise<KernelCount[]> {
  return database.query<KernelCount>(
    `SELECT execution_id, capture_id, rank, NULL AS device, count(*) AS kernels, sum(coalesce(self_dur_ns, dur_ns))::DOUBLE AS kernel_ns,
            min(start_ns) AS start_ns, max(start_ns + dur_ns) AS end_ns
     FROM ops WHERE op_type IS DISTINCT FROM 'python_function' AND start_ns IS NOT NULL GROUP BY ALL ORDER BY ALL`,
  );
}

async function chooseSource(
  database: SessionDatabase,
  manifest: ManifestData,
  counts: KernelCount[],
  { rank, device }: ScopeOptions,
): Promise<Omit<TraceSource, 'gpu_used'>> {
  const kernelsOf = (captureId: string) =>
    counts.filter((row) => row.capture_id === captureId).reduce((sum, row) => sum + row.kernels, 0);
  const candidates = manifest.captures
    .filter(({ capture_id }) => kernelsOf(capture_id) > 0)
    .toSorted((a, b) => toolRank(a) - toolRank(b) || kernelsOf(b.capture_id) - kernelsOf(a.capture_id));
  const [chosen] = candidates;
  if (!chosen) throw new Error('kernels of a capture that the manifest does not name');
  const why: string[] = [];
  const named = ({ tool, capture_id }: Capture) => `${tool.name} (${capture_id})`;
  if (candidates.length > 1) {
    const others = candidates.slice(1).map(named).join(', ');
    why.push(
      `Kernels, stages and gaps are taken from ${named(chosen)}, not from ${others}: no sums over captures.`,
    );
  }
  const own = counts.filter(
    (row) =>
      row.capture_id === chosen.capture_id &&
      (rank === undefined || row.rank === rank) &&
      (device === undefined || row.device === device),
  );
  const focus = own.toSorted((a, b) => b.kernel_ns - a.kernel_ns)[0];
  if (!focus) {
    throw new InferscopeError('E_USAGE', {
      what: `session ${manifest.id} has no kernels of rank ${rank ?? 'any'}, device ${device ?? 'any'}`,
      why: `It has ${[...new Set(counts.map((row) => `rank ${row.rank ?? '–'} device ${row.device ?? '–'}`))].join(', ')}.`,
      fix: 'Leave --rank and --device out, or give one of these.',
    });
  }
  if (own.length > 1) {
    why.push(
      `Shown is rank ${focus.rank ?? '–'} on device ${focus.device ?? '–'}, which computed longest of ${own.length}; ranks and devices are never added up.`,
    );
  }
  const clean = manifest.executions.filter(({ purpose }) => purpose === 'clean');
  const [timed] = await database.query<{ execution_id: string }>(
    `SELECT execution_id FROM stages
     WHERE list_contains(string_split($1, ','), execution_id) AND NOT coalesce(warmup, false)
       AND kind IN ('prefill', 'decode', 'mixed') LIMIT 1`,
    [clean.map(({ execution_id }) => execution_id).join(',')],
  );
  const timing = timed && timed.execution_id !== chosen.execution_id ? timed : null;
  why.push(
    timing
      ? `Stages that the clean execution (${timing.execution_id}) timed have its times, the others hold what the profiler added.`
      : 'No clean execution with stages is in the session: times hold what the profiler added.',
  );
  const purposeOf = (id: string) =>
    manifest.executions.find(({ execution_id }) => execution_id === id)?.purpose ?? 'imported';
  // Copies count as activity too: loading has hardly anything else.
  const [span] = await database.query<{ start_ns: number | null; end_ns: number | null }>(
    `SELECT min(start_ns) AS start_ns, max(start_ns + dur_ns) AS end_ns FROM copies
     WHERE capture_id = $1 AND rank IS NOT DISTINCT FROM $2::INTEGER AND device IS NOT DISTINCT FROM $3::INTEGER`,
    [chosen.capture_id, focus.rank, focus.device],
  );
  const start_ns = Math.min(focus.start_ns, span?.start_ns ?? focus.start_ns);
  const end_ns = Math.max(focus.end_ns, span?.end_ns ?? focus.end_ns);
  return {
    attribution: {
      execution_id: chosen.execution_id,
      capture_id: chosen.capture_id,
      tool: [chosen.tool.name, chosen.tool.version].filter(Boolean).join(' '),
      purpose: purposeOf(chosen.execution_id),
    },
    timing,
    focus: { rank: focus.rank, device: focus.device },
    why,
    executions: manifest.executions.map(({ execution_id, purpose }) => ({
      execution_id,
      purpose,
      captures: manifest.captures
        .filter((capture) => capture.execution_id === execution_id)
        .map(({ capture_id, tool }) => ({ capture_id, tool: tool.name, kernels: kernelsOf(capture_id) })),
      used_for:
        execution_id === chosen.execution_id
          ? ('attribution' as const)
          : execution_id === timing?.execution_id
            ? ('timing' as const)
            : null,
    })),
    start_ns,
    end_ns,
  };
}

/** Place of what was launched in no stage. */
const noStage = -1;

/** SQL of the key of place_of for a row of a table with stages. */
export const placeKey = (row: string): string => `coalesce(${row}.stage_id, ${noStage})`;

/**
 * SQL of the views and of the table `place_of`, by name and in the order in which they refer to each other: the same
 * definitions stand in front of a query that must run without them (waterfall/standalone.ts).
 */
export function scopeDefinitions({ attribution, focus }: TraceSource): Record<string, string> {
  const { execution_id, capture_id } = attribution;
  const capture = `execution_id = ${literal(execution_id)} AND capture_id = ${literal(capture_id)}`;
  const ofRank = focus.rank === null ? `${capture} AND rank IS NULL` : `${capture} AND rank = ${focus.rank}`;
  const ofDevice =
    focus.device === null ? `${ofRank} AND device IS NULL` : `${ofRank} AND device = ${focus.device}`;
  const definitions: Record<string, string> = {
    // Of all stages of the capture, and of none: an inner join that loses no row takes half of the time of an outer one.
    place_of: `WITH named AS (
       SELECT stage_id, parent_id, phase_id, CASE WHEN warmup THEN 'warmup' ELSE kind END AS kind FROM stages WHERE ${ofRank}),
     phases AS (SELECT * FROM named WHERE stage_id = phase_id),
     inside AS (
       SELECT p.stage_id, e.stage_id AS step_id FROM phases p
       JOIN named around ON around.stage_id = p.parent_id JOIN phases e ON e.stage_id = around.phase_id
       WHERE e.kind IN ('warmup', 'load') OR (p.kind = 'sampling' AND e.kind IN ('prefill', 'decode', 'mixed'))),
     climbed AS (
       SELECT i.stage_id, coalesce(third.step_id, second.step_id, i.step_id) AS step_id FROM inside i
       LEFT JOIN inside second ON second.stage_id = i.step_id LEFT JOIN inside third ON third.stage_id = second.step_id)
     SELECT s.stage_id, coalesce(p.kind, 'outside') AS phase, p.stage_id AS phase_id, coalesce(step_id, p.stage_id) AS step_id
     FROM named s LEFT JOIN phases p ON p.stage_id = s.phase_id LEFT JOIN climbed c ON c.stage_id = p.stage_id
     UNION ALL SELECT stage_id, 'outside', NULL, NULL FROM stages WHERE ${capture} AND (${ofRank}) IS NOT TRUE
     UNION ALL SELECT ${noStage}, 'outside', NULL, NULL`,
    phase_of: 'SELECT stage_id, phase AS kind, phase_id, step_id FROM place_of WHERE phase_id IS NOT NULL',
  };
  for (const [name, table, filter] of [
    ['kernels', 'kernels', ofDevice],
    ['copies', 'copies', ofDevice],
    ['gaps', 'gaps', ofDevice],
    ['api', 'api_calls', ofRank],
    ['ops', 'ops', ofRank],
  ] as const) {
    definitions[`own_${name}`] = `SELECT * FROM ${table} WHERE ${filter}`;
    definitions[`focus_${name}`] = `SELECT t.*, p.phase, p.phase_id, p.step_id
       FROM own_${name} t JOIN place_of p ON p.stage_id = ${placeKey('t')}`;
  }
  definitions['focus_stages'] = `SELECT t.*, p.kind AS phase, p.step_id
     FROM (SELECT * FROM stages WHERE ${ofRank}) t LEFT JOIN phase_of p ON p.stage_id = t.stage_id`;
  return definitions;
}

/** What the rows of the views depend on: the key of tables that are made of them once. */
export const scopeKey = ({ attribution, focus }: TraceSource): string =>
  JSON.stringify([attribution.execution_id, attribution.capture_id, focus.rank, focus.device]);

/** The views of traceScope on another connection to the same session. */
export async function createViews(database: SessionDatabase, source: TraceSource): Promise<void> {
  for (const [name, sql] of Object.entries(scopeDefinitions(source))) {
    // Ids are unique within the capture. Few columns, once: every question joins place_of.
    if (name === 'place_of') await database.once(name, sql, sql);
    else await database.query(`CREATE TEMP VIEW ${name} AS ${sql}`);
  }
}
