import type { SessionDatabase } from '../../session/query.js';
import { type MetricPart, partOfRepeats } from './metric-parts.js';

const inExecutions = `list_contains(string_split($1, ','), execution_id)`;
/** Excludes result files, which have their own figures and definitions (result-parts.ts). */
const notOfResultFiles = `capture_id NOT IN (SELECT DISTINCT capture_id FROM metrics)`;

export interface IterationRow {
  launch: string;
  batch_size: number | null;
  input_len: number | null;
  output_len: number | null;
  ttft_ns: number | null;
  tpot_ns: number | null;
  e2e_ns: number;
}

/** TTFT, TPOT, end-to-end latency and output tokens/s of timed repeats, one metric per workload size. */
export async function iterationParts(
  database: SessionDatabase,
  executions: readonly string[],
): Promise<MetricPart[]> {
  const rows = await database.query<IterationRow>(
    `SELECT concat_ws(' ', execution_id, capture_id, pid, launch) AS launch, batch_size, input_len, output_len, ttft_ns, tpot_ns,
            end_ns - start_ns AS e2e_ns
     FROM iterations WHERE ${inExecutions} AND ${notOfResultFiles} AND NOT coalesce(warmup, false) AND end_ns > start_ns
     ORDER BY execution_id, capture_id, launch, iteration`,
    [executions.join(',')],
  );
  const sizes = new Set(rows.map(sizeOf));
  return [...sizes].flatMap((size) =>
    timeParts(
      sizes.size > 1 ? size : null,
      rows.filter((row) => sizeOf(row) === size),
    ),
  );
}

/** The four figures of repeats with one size. */
export function timeParts(
  point: string | null,
  rows: readonly Omit<IterationRow, 'input_len'>[],
): MetricPart[] {
  const part = (
    name: string,
    unit: string,
    better: MetricPart['better'],
    value: (row: (typeof rows)[number]) => number | null,
  ) =>
    partOfRepeats(
      { point, name, unit, better, source: 'iterations' },
      rows.flatMap((row) => {
        const rowValue = value(row);
        return rowValue === null ? [] : [{ launch: row.launch, value: rowValue }];
      }),
    );
  const ms = (ns: number | null) => (ns === null ? null : ns / 1e6);
  return [
    ...part('ttft_ms', 'ms', 'lower', (row) => ms(row.ttft_ns)),
    ...part('tpot_ms', 'ms', 'lower', (row) => ms(row.tpot_ns)),
    ...part('e2e_ms', 'ms', 'lower', (row) => ms(row.e2e_ns)),
    ...part('output_tokens_per_s', 'tok/s', 'higher', ({ batch_size, output_len, e2e_ns }) =>
      batch_size === null || !output_len ? null : (batch_size * output_len * 1e9) / e2e_ns,
    ),
  ];
}

function sizeOf({ batch_size, input_len, output_len }: IterationRow): string {
  return `batch ${batch_size ?? '?'}, ${input_len ?? '?'} → ${output_len ?? '?'}`;
}

interface RequestRow {
  execution_id: string;
  ttft_ns: number | null;
  tpot_ns: number | null;
  e2e_ns: number | null;
  sent_ns: number | null;
  output_tokens: number | null;
}

/**
 * Latencies of successful requests, and their tokens per second. Requests of one run share its load, so they are
 * repeats, not launches.
 * @param loads labels of the loads by execution: "8 users"
 */
export async function requestParts(
  database: SessionDatabase,
  executions: readonly string[],
  loads: ReadonlyMap<string, string>,
): Promise<MetricPart[]> {
  const rows = await database.query<RequestRow>(
    `SELECT execution_id, ttft_ns, tpot_ns, end_ns - sent_ns AS e2e_ns, sent_ns, output_tokens FROM requests
     WHERE ${inExecutions} AND ${notOfResultFiles} AND NOT coalesce(warmup, false) AND status = 'ok' ORDER BY execution_id, sent_ns`,
    [executions.join(',')],
  );
  const points = [...new Set(rows.map(({ execution_id }) => execution_id))];
  return points.flatMap((execution) => {
    const executionRows = rows.filter(({ execution_id }) => execution_id === execution);
    // Also of a single load, so that it equals the same load of a session with several.
    const point = loads.get(execution) ?? (points.length > 1 ? execution : null);
    const latencies = (['ttft', 'tpot', 'e2e'] as const).flatMap((name) =>
      partOfRepeats(
        { point, name: `${name}_ms`, unit: 'ms', better: 'lower', source: 'requests' },
        executionRows.flatMap((row) => {
          const ns = row[`${name}_ns`];
          return ns === null ? [] : [{ launch: execution, value: ns / 1e6 }];
        }),
      ),
    );
    return [...latencies, ...outputRate(executionRows, point)];
  });
}

/** Generated tokens / time from first send to last content: one value per run, without a spread. */
function outputRate(rows: readonly RequestRow[], point: string | null): MetricPart[] {
  const timed = rows.filter(({ sent_ns, e2e_ns }) => sent_ns !== null && e2e_ns !== null);
  const start = timed.reduce((low, { sent_ns }) => Math.min(low, sent_ns!), Infinity);
  const end = timed.reduce((high, { sent_ns, e2e_ns }) => Math.max(high, sent_ns! + e2e_ns!), -Infinity);
  const tokens = timed.reduce((sum, { output_tokens }) => sum + (output_tokens ?? 0), 0);
  if (tokens === 0 || end <= start) return [];
  const value = (tokens * 1e9) / (end - start);
  const rate = { name: 'output_tokens_per_s', unit: 'tok/s', better: 'higher' as const };
  return [{ ...rate, point, value, launches: [], repeats: [], interval: null, source: 'requests' }];
}

/** Peak memory of each process, for host and devices separately. */
export async function memoryParts(
  database: SessionDatabase,
  executions: readonly string[],
): Promise<MetricPart[]> {
  const rows = await database.query<{ launch: string; device: number | null; bytes: number }>(
    `SELECT concat_ws(' ', execution_id, pid) AS launch, device, max(bytes) AS bytes FROM memory
     WHERE ${inExecutions} AND point = 'peak' GROUP BY execution_id, pid, device ORDER BY 1, 2`,
    [executions.join(',')],
  );
  const devices = [...new Set(rows.map(({ device }) => device))];
  return devices.flatMap((device) =>
    partOfRepeats(
      {
        point: device === null ? null : `GPU ${device}`,
        name: 'peak_memory_bytes',
        unit: 'B',
        better: 'lower',
        source: 'memory, peak',
      },
      rows.filter((row) => row.device === device).map(({ launch, bytes }) => ({ launch, value: bytes })),
    ),
  );
}
