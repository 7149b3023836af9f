import type { MemoryPlan } from '../../model/memory-plan.js';
import type { SessionDatabase } from '../../session/query.js';

/** One sample of a GPU's or a process's memory; t_ns since the session's start. */
export interface Sample {
  t_ns: number;
  bytes: number;
}

/**
 * An engine's record of its memory. Kinds are `<what>:<stage>:<dtype or place>` (docs/reference/recording-protocol.md).
 */
export interface RecordedRow {
  device: number | null;
  rank: number;
  t_ns: number;
  what: string;
  stage: string | null;
  detail: string | null;
  bytes: number;
  point: 'baseline' | 'post_warmup' | 'peak' | null;
  source: string;
  /** Number of blocks of an allocation; null for other kinds. */
  blocks: number | null;
}

export interface MemoryRows {
  /** Use of whole devices, by GPU. */
  used: Map<number, Sample[]>;
  usedSource: string | null;
  /** Processes listed by the driver, by GPU and pid. */
  processes: { gpu: number; pid: number; samples: Sample[] }[];
  /** Resident memory of the engine's process tree, from the host sampler. */
  rss: Sample[];
  /** File-backed and anonymous pages at the same moments. */
  file: Sample[];
  anonymous: Sample[];
  recorded: RecordedRow[];
  /** Timed repeats, warm-up repeats and loading. */
  phases: { label: string; start_ns: number; end_ns: number }[];
}

interface TableRow {
  capture_id: string;
  device: number | null;
  pid: number | null;
  rank: number | null;
  t_ns: number;
  kind: string;
  bytes: number;
  point: RecordedRow['point'];
  source: string;
  blocks: number | null;
}

/**
 * Memory rows of an execution, sorted by time.
 * @param pid only rows of this process; null for all processes
 */
export async function readMemoryRows(
  database: SessionDatabase,
  { execution_id }: Pick<MemoryPlan, 'execution_id'>,
  pid: number | null = null,
): Promise<MemoryRows> {
  const pidCondition = pid === null ? '' : `AND pid = ${pid}`;
  const rows = await database.query<TableRow>(
    `SELECT capture_id, device, pid, rank, t_ns, kind, bytes, point, source, blocks FROM memory
     WHERE execution_id = $1 ${pidCondition} ORDER BY t_ns`,
    [execution_id],
  );
  const loaded: MemoryRows = {
    used: new Map(),
    usedSource: null,
    processes: [],
    rss: [],
    file: [],
    anonymous: [],
    recorded: [],
    phases: await readPhases(database, execution_id, pidCondition),
  };
  for (const row of rows) addRow(row, loaded, `${execution_id}-host`);
  return loaded;
}

function addRow(row: TableRow, rows: MemoryRows, hostCapture: string): void {
  const { device, pid, kind, t_ns, bytes } = row;
  const sample = { t_ns, bytes };
  if (row.capture_id === hostCapture) {
    if (kind === 'rss' || kind === 'file' || kind === 'anonymous') rows[kind].push(sample);
  } else if (kind === 'used' && device !== null) {
    rows.usedSource ??= row.source;
    const known = rows.used.get(device);
    if (known) known.push(sample);
    else rows.used.set(device, [sample]);
  } else if (kind === 'process' && device !== null && pid !== null) {
    const known = rows.processes.find((process) => process.gpu === device && process.pid === pid);
    if (known) known.samples.push(sample);
    else rows.processes.push({ gpu: device, pid, samples: [sample] });
  } else {
    const [what, stage, ...detail] = kind.split(':');
    rows.recorded.push({
      device,
      rank: row.rank ?? 0,
      t_ns,
      what: what!,
      stage: stage || null,
      detail: detail.join(':') || null,
      bytes,
      point: row.point,
      source: row.source,
      blocks: row.blocks,
    });
  }
}

function readPhases(
  database: SessionDatabase,
  execution: string,
  pidCondition: string,
): Promise<MemoryRows['phases']> {
  return database.query(
    `SELECT 'load' AS label, min(start_ns) AS start_ns, max(end_ns) AS end_ns FROM stages
       WHERE execution_id = $1 AND kind = 'load' ${pidCondition} HAVING count(*) > 0
     UNION ALL
     SELECT CASE WHEN warmup THEN 'warm-up' ELSE 'timed' END, min(start_ns), max(end_ns) FROM iterations
       WHERE execution_id = $1 ${pidCondition} GROUP BY warmup
     ORDER BY start_ns`,
    [execution],
  );
}

/** Stages that the engine records at the end of an attempt to generate. */
const attemptStages = new Set(['prefill', 'decode', 'failed']);

/** Whether the last attempt before this moment failed. The engine then continues without it, and records later moments, too. */
export function isAfterFailure({ recorded }: Pick<MemoryRows, 'recorded'>, t_ns: number): boolean {
  const last = recorded.findLast((row) => row.t_ns < t_ns && attemptStages.has(row.stage ?? ''));
  return last?.stage === 'failed';
}

interface RowFilter {
  what: string;
  stage?: string;
  device?: number | null;
}

export function recordedRows(
  recorded: readonly RecordedRow[],
  { what, stage, device }: RowFilter,
): RecordedRow[] {
  return recorded.filter(
    (row) =>
      row.what === what &&
      (stage === undefined || row.stage === stage) &&
      (device === undefined || row.device === device),
  );
}

/** The largest of several records of the same quantity; null when it was never recorded. */
export function maxRecorded(recorded: readonly RecordedRow[], filter: RowFilter): number | null {
  const matching = recordedRows(recorded, filter);
  return matching.length === 0 ? null : Math.max(...matching.map(({ bytes }) => bytes));
}

/**
 * Bytes of tensors, recorded per dtype: the maximum of each rank, device and dtype, summed; null when never recorded.
 */
export function tensorBytes(recorded: readonly RecordedRow[], filter: RowFilter): number | null {
  const matching = recordedRows(recorded, filter);
  if (matching.length === 0) return null;
  const maxByKind = new Map<string, number>();
  for (const { rank, device, detail, bytes } of matching) {
    const key = `${rank} ${device} ${detail}`;
    maxByKind.set(key, Math.max(maxByKind.get(key) ?? 0, bytes));
  }
  return [...maxByKind.values()].reduce((sum, bytes) => sum + bytes, 0);
}

/**
 * The highest sample; null without one. It uses a loop, because hours of samples exceed the number of arguments of a
 * call.
 */
export function highest(samples: readonly Sample[]): Sample | null {
  let peak: Sample | null = null;
  for (const sample of samples) if (!peak || sample.bytes > peak.bytes) peak = sample;
  return peak;
}

/** Delay of the driver's count behind an allocation: one sample at 20 Hz. */
const driverDelayNs = 50e6;
/** Older samples do not describe the moment: some tools sample once per second. */
const staleNs = 200e6;
/** A next sample that is later than this does not describe the moment either. */
const maxDelayNs = 1.5e9;

/**
 * The sample at a moment after which memory is not released: the last recent one, else the next soon after, else the last.
 */
export function quietSample(samples: readonly Sample[], t_ns: number): Sample | null {
  const before = samples.findLast((sample) => sample.t_ns <= t_ns + driverDelayNs);
  if (before && t_ns - before.t_ns <= staleNs) return before;
  const next = samples.find((sample) => sample.t_ns > t_ns);
  return next && next.t_ns - t_ns <= maxDelayNs ? next : (before ?? null);
}

/** The last sample at or before a moment, else the first one after it. */
export function sampleAt(samples: readonly Sample[], t_ns: number): Sample | null {
  return samples.findLast((sample) => sample.t_ns <= t_ns) ?? samples[0] ?? null;
}
