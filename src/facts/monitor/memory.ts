import type { MonitorDevice, MonitorMetric, MonitorPlan } from '../../model/documents/monitor.js';
import { figure, missing, type Figure } from '../../model/figure.js';
import type { SessionDatabase } from '../../session/query.js';

export async function readMemory(
  database: SessionDatabase,
  scope: string,
  metrics: readonly MonitorMetric[],
): Promise<MonitorDevice['memory']> {
  const used = metrics.find(({ metric }) => metric === 'memory_used_bytes');
  const [total] = await database.query<{ bytes: number | null }>(
    `SELECT max(value) AS bytes FROM monitor_samples WHERE scope = $1 AND metric = 'memory_total_bytes'`,
    [scope],
  );
  const noMemory = missing('no_memory', 'The source does not have the memory in use.');
  const bytesFigure = (value: number | undefined): Figure =>
    value === undefined ? noMemory : figure(value, 'B', 'memory in use on the device', { n: used!.n });
  return {
    total_bytes:
      total && total.bytes !== null
        ? figure(total.bytes, 'B', 'telemetry: memory_total_bytes')
        : missing('no_memory_total', 'The source does not have the memory size.'),
    first_bytes: bytesFigure(used?.first),
    peak_bytes: bytesFigure(used?.max),
    last_bytes: bytesFigure(used?.last),
    growth_bytes: bytesFigure(used && used.last - used.first),
  };
}

/** Processes by peak memory. */
export async function readProcesses(
  database: SessionDatabase,
  scope: string,
  plan: MonitorPlan,
): Promise<MonitorDevice['processes']> {
  const rows = await database.query<{ pid: number; peak_bytes: number; last_bytes: number }>(
    `SELECT pid, max(bytes) AS peak_bytes, arg_max(bytes, t_ns) AS last_bytes FROM memory
     WHERE kind = 'process' AND 'gpu' || device = $1 AND pid IS NOT NULL GROUP BY pid ORDER BY peak_bytes DESC, pid`,
    [scope],
  );
  return rows.map((row) => {
    const processFacts = plan.processes.find(({ pid }) => pid === row.pid);
    return {
      ...row,
      name: processFacts?.name ?? null,
      here: processFacts?.here ?? null,
    };
  });
}
