import { stepKindsSql } from '../../model/record.js';
import type { TimelineTable } from '../../model/derived-tables.js';
import type { Capture, ManifestData } from '../../model/manifest.js';
import type { TraceSource } from '../../model/documents/trace.js';
import { InferscopeError } from '../../model/errors.js';
import type { SessionDatabase } from '../../session/query.js';
import { makeKernelStreams } from '../trace/kernel-streams.js';
import { scopeKey, type ScopeOptions, type TraceScope } from '../trace/scope.js';
import { createFrom } from '../../session/stepped-query.js';
import { relations, rowsOfScope } from './relations.js';
import { markedSteps } from '../trace/step-transfers.js';
import { rankName } from '../../vocabulary/ranks.js';

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

/** Timelines in order of preference. nsys has the least overhead. */
const preferredTools = ['nsys', 'kineto', 'torch'];

/** Maximum other captures named in the reason. */
const maxNamed = 8;

function toolRank({ tool, importer }: Capture): number {
  const index = preferredTools.findIndex((name) => importer.includes(name) || tool.name.includes(name));
  return index === -1 ? preferredTools.length : index;
}

/**
 * Chooses the timeline to analyze, and makes the tables that every analysis reads.
 *
 * A phase inside a warm-up, or marked as one, has kind warmup; rows outside phases have `outside`. step_id is the
 * phase, or the prefill or decode step around it: sampling inside a step belongs to the step.
 * @throws E_USAGE if the session has neither kernels nor operators, or none for the requested rank and device
 */
export async function traceScope(
  database: SessionDatabase,
  manifest: ManifestData,
  options: ScopeOptions = {},
): Promise<TraceScope> {
  await makeKernelStreams(database);
  const { capture } = options;
  const isOfCapture = (row: KernelCount) => capture === undefined || row.capture_id === capture;
  const counts = (await kernelCounts(database)).filter(isOfCapture);
  const gpuUsed = counts.length > 0;
  if (!gpuUsed) counts.push(...(await operatorCounts(database)).filter(isOfCapture));
  if (counts.length === 0) {
    throw new InferscopeError('E_USAGE', {
      what: `session ${manifest.id} has no GPU timeline`,
      why: 'Its captures have neither device kernels nor operators.',
      fix: 'Record one: inferscope run --evaluator nsys -- <command>, or inferscope import FILE.',
    });
  }
  const source = { ...(await chooseSource(database, manifest, counts, options)), gpu_used: gpuUsed };
  const scope = scopeOn(database, source);
  await scope.need(...rowsOfScope);
  return scope;
}

/** One rank on one device of a capture, by name for traceScope. */
export type Timeline = Required<ScopeOptions>;

/** All timelines of the session: those of kernels, and those of operators in captures without kernels. */
export async function timelinesOf(database: SessionDatabase): Promise<Timeline[]> {
  return database.query<Timeline>(
    `SELECT DISTINCT capture_id AS capture, rank, device FROM kernels
     UNION SELECT DISTINCT capture_id, rank, NULL FROM ops
       WHERE op_type IS DISTINCT FROM 'python_function' AND start_ns IS NOT NULL AND capture_id NOT IN (SELECT capture_id FROM kernels)
     ORDER BY ALL`,
  );
}

/** The same scope on another connection to the session. */
export function scopeOn(database: SessionDatabase, source: TraceSource): TraceScope {
  const createdTables = new Map<TimelineTable, Promise<void>>();
  const make = async (table: TimelineTable): Promise<void> => {
    const { needs, storage, rows } = relations[table];
    await scope.need(...needs);
    const { steps, select } = await rows(scope);
    if (storage === 'view') await database.query(`CREATE TEMP VIEW ${table} AS ${select}`);
    else if (storage === 'shared') await database.once(table, scopeKey(source), select);
    else await createFrom(database, table, { steps, select });
  };
  const scope: TraceScope = {
    database,
    source,
    async need(...tables) {
      for (const table of tables) {
        const making = createdTables.get(table) ?? make(table);
        createdTables.set(table, making);
        await making;
      }
    },
  };
  return scope;
}

const kernelCounts = (database: SessionDatabase): Promise<KernelCount[]> =>
  database.query<KernelCount>(
    `SELECT execution_id, capture_id, rank, device, sum(kernels)::BIGINT AS kernels, sum(dur_ns) AS kernel_ns,
            min(start_ns) AS start_ns, max(end_ns) AS end_ns
     FROM kernel_streams GROUP BY ALL ORDER BY ALL`,
  );

/** A program without a GPU still has operators under PyTorch's profiler. */
async function operatorCounts(database: SessionDatabase): Promise<KernelCount[]> {
  return database.query<KernelCount>(
    `SELECT execution_id, capture_id, rank, NULL AS device, count(*) AS kernels, sum(coalesce(self_dur_ns, dur_ns))::DOUBLE AS kernel_ns,
            min(start_ns) AS start_ns, max(start_ns + dur_ns) AS end_ns
     FROM ops WHERE op_type IS DISTINCT FROM 'python_function' AND start_ns IS NOT NULL GROUP BY ALL ORDER BY ALL`,
  );
}

/** The embedded engine records its stages, and its runtime records operators: two captures of one execution. */
async function stagesElsewhere(
  database: SessionDatabase,
  { execution_id, capture_id }: Capture,
): Promise<{ stages_capture_id?: string }> {
  const [found] = await database.query<{ capture_id: string }>(
    `SELECT DISTINCT s.capture_id FROM ops o JOIN stages s USING (execution_id, stage_id)
     WHERE o.execution_id = $1 AND o.capture_id = $2 AND NOT EXISTS (SELECT 1 FROM stages WHERE execution_id = $1 AND capture_id = $2) LIMIT 1`,
    [execution_id, capture_id],
  );
  return found ? { stages_capture_id: found.capture_id } : {};
}

async function chooseSource(
  database: SessionDatabase,
  manifest: ManifestData,
  counts: readonly KernelCount[],
  options: ScopeOptions,
): Promise<Omit<TraceSource, 'gpu_used'>> {
  const { capture, why: captureReasons } = chooseCapture(manifest, counts, options);
  const { focus, why: focusReasons } = chooseFocus(manifest, counts, capture, options);
  const { execution_id, capture_id, tool } = capture;
  const timing = await findTiming(database, manifest, capture);
  const timingReason = timing
    ? `Stages timed in the clean execution (${timing.execution_id}) have its times; the others include profiler overhead.`
    : 'The session has no clean execution with stages: times include profiler overhead.';
  return {
    attribution: {
      execution_id,
      capture_id,
      ...(await stagesElsewhere(database, capture)),
      tool: [tool.name, tool.version].filter(Boolean).join(' '),
      purpose:
        manifest.executions.find((execution) => execution.execution_id === execution_id)?.purpose ??
        'imported',
    },
    timing,
    focus: {
      rank: focus.rank,
      device: focus.device,
      ...(await processOf(database, counts, focus)),
    },
    why: [...captureReasons, ...focusReasons, timingReason],
    executions: manifest.executions.map((execution) => ({
      execution_id: execution.execution_id,
      purpose: execution.purpose,
      captures: manifest.captures
        .filter((other) => other.execution_id === execution.execution_id)
        .map((other) => ({
          capture_id: other.capture_id,
          tool: other.tool.name,
          kernels: kernelsOf(counts, other),
        })),
      used_for:
        execution.execution_id === execution_id
          ? ('attribution' as const)
          : execution.execution_id === timing?.execution_id
            ? ('timing' as const)
            : null,
    })),
    ...(await activeSpan(database, capture_id, focus)),
  };
}

const kernelsOf = (counts: readonly KernelCount[], { capture_id }: Capture): number =>
  counts.filter((row) => row.capture_id === capture_id).reduce((sum, row) => sum + row.kernels, 0);

const isRequested = (row: KernelCount, { rank, device }: ScopeOptions): boolean =>
  (rank === undefined || row.rank === rank) && (device === undefined || row.device === device);

/** The capture with the requested rank that disturbs the program least, and why not another. */
function chooseCapture(
  manifest: ManifestData,
  counts: readonly KernelCount[],
  options: ScopeOptions,
): { capture: Capture; why: string[] } {
  const withKernels = manifest.captures.filter((capture) => kernelsOf(counts, capture) > 0);
  // Each rank of a job may have its own capture.
  const withRank = withKernels.filter(({ capture_id }) =>
    counts.some((row) => row.capture_id === capture_id && isRequested(row, options)),
  );
  const [capture, ...others] = (withRank.length > 0 ? withRank : withKernels).toSorted(
    (a, b) => toolRank(a) - toolRank(b) || kernelsOf(counts, b) - kernelsOf(counts, a),
  );
  if (!capture) throw new Error('kernels of a capture that the manifest does not name');
  if (others.length === 0) return { capture, why: [] };
  const nameOf = ({ tool, capture_id }: Capture) => `${tool.name} (${capture_id})`;
  const otherNames = `${others.slice(0, maxNamed).map(nameOf).join(', ')}${others.length > maxNamed ? ', …' : ''}`;
  return {
    capture,
    why: [
      `Kernels, stages and gaps are taken from ${nameOf(capture)}, not from ${otherNames}: no sums over captures.`,
    ],
  };
}

/**
 * The requested rank and GPU with the most kernel time in a capture, and why not another.
 * @throws E_USAGE if the capture has no kernels of the requested rank and device
 */
function chooseFocus(
  { id }: ManifestData,
  counts: readonly KernelCount[],
  { capture_id }: Capture,
  options: ScopeOptions,
): { focus: KernelCount; why: string[] } {
  const requested = counts.filter((row) => row.capture_id === capture_id && isRequested(row, options));
  const [focus] = requested.toSorted((a, b) => b.kernel_ns - a.kernel_ns);
  if (!focus) {
    const { rank, device } = options;
    throw new InferscopeError('E_USAGE', {
      what: `session ${id} has no kernels of ${rank === undefined ? `GPU ${device}` : rankName({ rank, device: device ?? null })}`,
      why: `It has ${[...new Set(counts.map(rankName))].join(', ')}.`,
      fix: 'Omit --rank and --device, or give one of these.',
    });
  }
  if (requested.length === 1) return { focus, why: [] };
  return {
    focus,
    why: [
      `Showing ${rankName(focus)}, with the most recorded time of ${requested.length}; ranks and GPUs are never summed.`,
    ],
  };
}

/**
 * Where a process has a rank per device: its lowest rank, if the rank has no rows of the host, and the threads that launch only on other
 * devices, if one that launches on this device marks steps.
 */
async function processOf(
  database: SessionDatabase,
  counts: readonly KernelCount[],
  { capture_id, rank, device }: KernelCount,
): Promise<{ process_rank?: number; other_threads?: number[] }> {
  const ranks = new Set(counts.flatMap((row) => (row.capture_id === capture_id ? [row.rank] : [])));
  if (rank === null || ranks.size < 2) return {};
  const [row] = await database.query<{ rank: number | null; threads: number[] | null }>(
    `WITH in_process AS (
       SELECT rank, tid FROM kernels WHERE capture_id = $1 AND pid = (SELECT any_value(pid) FROM kernels WHERE capture_id = $1 AND rank = $2::INTEGER AND device IS NOT DISTINCT FROM $3::INTEGER))
     SELECT (SELECT min(rank) FROM in_process WHERE NOT EXISTS (SELECT 1 FROM stages WHERE capture_id = $1 AND rank = $2::INTEGER)
         AND NOT EXISTS (SELECT 1 FROM api_calls WHERE capture_id = $1 AND rank = $2::INTEGER)) AS rank,
       (SELECT list(tid ORDER BY tid) FROM (SELECT tid FROM in_process WHERE tid IS NOT NULL GROUP BY tid HAVING NOT bool_or(rank = $2::INTEGER))
         WHERE EXISTS (SELECT 1 FROM stages WHERE capture_id = $1 AND stage_id = phase_id AND kind IN ${markedSteps} AND tid IN (SELECT tid FROM in_process WHERE rank = $2::INTEGER))) AS threads`,
    [capture_id, rank, device],
  );
  const { rank: lowest = null, threads = null } = row ?? {};
  return {
    ...(lowest === null || lowest === rank ? {} : { process_rank: lowest }),
    ...(threads === null ? {} : { other_threads: threads }),
  };
}

/** The clean execution with timed stages, if it is not the one of the capture. */
async function findTiming(
  database: SessionDatabase,
  { executions }: ManifestData,
  { execution_id }: Capture,
): Promise<{ execution_id: string } | null> {
  const clean = executions.filter(({ purpose }) => purpose === 'clean');
  const [timed] = await database.query<{ execution_id: string }>(
    `SELECT execution_id FROM stages
     WHERE list_contains(string_split($1, ','), execution_id) AND NOT coalesce(warmup, false)
       AND (kind IN ${stepKindsSql} OR kind = 'other' AND raw_name LIKE 'inferscope:other:%') LIMIT 1`,
    [clean.map((execution) => execution.execution_id).join(',')],
  );
  return timed && timed.execution_id !== execution_id ? timed : null;
}

/** From the first to the last activity of a GPU. Copies count too: loading has few kernels. */
async function activeSpan(
  database: SessionDatabase,
  captureId: string,
  { rank, device, start_ns, end_ns }: KernelCount,
): Promise<{ start_ns: number; end_ns: number }> {
  const [copies] = await database.query<{ start_ns: number | null; end_ns: number | null }>(
    `SELECT min(start_ns) AS start_ns, max(start_ns + dur_ns) AS end_ns FROM copies
     WHERE capture_id = $1 AND rank IS NOT DISTINCT FROM $2::INTEGER AND device IS NOT DISTINCT FROM $3::INTEGER`,
    [captureId, rank, device],
  );
  return {
    start_ns: Math.min(start_ns, copies?.start_ns ?? start_ns),
    end_ns: Math.max(end_ns, copies?.end_ns ?? end_ns),
  };
}
