import type { ServingPoint, ServingResult } from '../model/documents/serving.js';
import { csvRows } from './csv.js';
import { writeAtomically } from '../model/atomic-write.js';
import { asStorageFailure } from '../vocabulary/storage-failure.js';

type Cell = string | number | boolean | null;

function cells(point: ServingPoint): Record<string, Cell> {
  const { load, requests, latency, throughput, goodput, client } = point;
  const row: Record<string, Cell> = {
    execution_id: point.execution_id,
    kind: load.kind,
    concurrency: load.concurrency,
    rate_per_s: load.rate_per_s,
    seconds: point.seconds,
    requests: requests.measured,
    ok: requests.ok,
    failed: requests.failed,
    requests_per_s: throughput.requests_per_s.value,
    output_tokens_per_s: throughput.output_tokens_per_s.value,
    total_tokens_per_s: throughput.total_tokens_per_s.value,
  };
  for (const [name, spread] of Object.entries(latency)) {
    const known = 'p50' in spread ? spread : null;
    for (const statistic of ['mean', 'sd', 'p50', 'p90', 'p95', 'p99'] as const)
      row[`${name}_${statistic}_ms`] = known?.[statistic] ?? null;
  }
  return {
    ...row,
    goodput_requests_per_s: goodput.requests_per_s.value,
    goodput_share: goodput.share.value,
    send_lag_p99_ms: client.send_lag_p99_ms,
    event_loop_delay_p99_ms: client.event_loop_delay_p99_ms,
    client_bound: client.bound,
  };
}

/** One row per load; missing values are empty. @throws E_DISK_FULL, E_HOME_UNWRITABLE */
export function servingCsv({ points }: ServingResult, path: string): void {
  try {
    writeAtomically(path, csvRows(points.map(cells)));
  } catch (error) {
    throw asStorageFailure(error, { path, doing: 'write the CSV' });
  }
}
