import { isGpuScope } from '../../vocabulary/sampled-metrics.js';
import { document, type Document } from '../../model/document.js';
import {
  type MonitorDevice,
  type MonitorMetric,
  type MonitorPlan,
  monitorPlanSchema,
  type MonitorResult,
  monitorVersion,
} from '../../model/documents/monitor.js';
import { InferscopeError } from '../../model/errors.js';
import { figure, missing, type Figure } from '../../model/figure.js';
import type { Session } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import { sessionOfKind } from '../session-identity.js';
import { readArtifactJson } from '../artifact.js';
import { deviceHeadline, headlines } from './headlines.js';
import { readIdle } from './idle.js';
import { readMemory, readProcesses } from './memory.js';
import { readMetrics, readMonitorSeries } from './metrics.js';
import { readPower } from './power.js';
import { gpuScope, makeSamples } from './samples.js';
import { readClock, readThrottling } from './throttling.js';

interface MonitorThresholds {
  /** Utilization below this is idle. */
  idlePercent: number;
  /** Minimum length of an idle period. */
  idleMs: number;
}

/** NVIDIA's utilization is an integer mean over 1/6 to 1 s. Under 5 % is a rare small kernel. */
const usualThresholds: MonitorThresholds = { idlePercent: 5, idleMs: 500 };
const fixedThresholds = { busy_percent: 50, clock_drop: 0.9, near_limit: 0.95 };

/**
 * Activity of GPUs and host during a recording of `inferscope monitor` or nvidia-smi.
 * @throws E_USAGE if the session has no samples
 */
export async function analyzeMonitor(
  session: Session,
  thresholds: MonitorThresholds = usualThresholds,
): Promise<Document<MonitorResult>> {
  const plan = await readMonitorPlan(session);
  const database = await session.connect();
  try {
    await makeSamples(database);
    const metrics = await readMetrics(database);
    if (metrics.size === 0) throw noSamples(session);
    const span = await readSpan(database);
    const devices: MonitorDevice[] = [];
    for (const scope of [...metrics.keys()].filter(isGpuScope).sort(byNumber))
      devices.push(await readDevice(database, scope, metrics.get(scope)!, plan, thresholds));
    for (const device of devices) device.headline = deviceHeadline(device, thresholds.idlePercent);
    const data: MonitorResult = {
      session: sessionOfKind(session),
      plan,
      ...span,
      thresholds: { idle_percent: thresholds.idlePercent, idle_ms: thresholds.idleMs, ...fixedThresholds },
      headlines: [],
      devices,
      host: {
        metrics: [...metrics]
          .filter(([scope]) => !isGpuScope(scope))
          .flatMap(([scope, scopeMetrics]) => scopeMetrics.map((metric) => ({ scope, ...metric }))),
      },
      series: await readMonitorSeries(database),
    };
    data.headlines = headlines(data);
    return document('monitor', monitorVersion, data, session.issues);
  } finally {
    await database.close();
  }
}

async function readDevice(
  database: SessionDatabase,
  scope: string,
  metrics: MonitorMetric[],
  plan: MonitorPlan,
  { idlePercent, idleMs }: MonitorThresholds,
): Promise<MonitorDevice> {
  const clock = await readClock(database, scope, {
    busyPercent: fixedThresholds.busy_percent,
    drop: fixedThresholds.clock_drop,
  });
  return {
    scope,
    name: plan.gpus.find((gpu) => gpu.scope === scope)?.name ?? null,
    headline: '',
    metrics,
    idle: await readIdle(database, scope, { percent: idlePercent, ms: idleMs }),
    throttling: await readThrottling(database, scope, clock.usual_mhz),
    clock,
    power: await readPower(database, scope, fixedThresholds.near_limit),
    memory: await readMemory(database, scope, metrics),
    processes: await readProcesses(database, scope, plan),
  };
}

/** gpu2 before gpu10. */
function byNumber(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true });
}

async function readSpan(database: SessionDatabase): Promise<{ duration_s: Figure; sample_hz: Figure }> {
  const [span] = await database.query<{ seconds: number | null }>(
    'SELECT (max(t_ns) - min(t_ns)) / 1e9 AS seconds FROM monitor_samples',
  );
  const [rate] = await database.query<{ hz: number | null; n: number; what: string }>(
    `SELECT (count(*) - 1) / nullif((max(t_ns) - min(t_ns)) / 1e9, 0) AS hz, count(*) AS n, scope || ' ' || metric AS what
     FROM monitor_samples WHERE metric IN ('utilization_percent', 'power_w')
     GROUP BY scope, metric ORDER BY ${gpuScope} DESC, metric DESC, scope LIMIT 1`,
  );
  return {
    duration_s:
      span && span.seconds !== null
        ? figure(span.seconds, 's', 'first to last sample')
        : missing('no_samples', 'There are no samples.'),
    sample_hz:
      rate && rate.hz !== null
        ? figure(rate.hz, 'Hz', `samples of ${rate.what} / their time`, { n: rate.n })
        : missing('too_short', 'One sample has no rate.'),
  };
}

/** Recordings of other tools have no plan; their facts are in the manifest. */
async function readMonitorPlan(session: Session): Promise<MonitorPlan> {
  const plan = await readArtifactJson(session, 'monitor', 'the devices and settings of the recording');
  if (plan !== null) return monitorPlanSchema.parse(plan);
  const { manifest } = session;
  const name = manifest.hardware['gpu_name'];
  const driver = manifest.software['nvidia_driver'];
  return {
    source: 'files',
    tool: [...new Set(manifest.captures.map(({ tool }) => tool.name))].join(', ') || null,
    driver: typeof driver === 'string' ? driver : null,
    files: manifest.artifacts.map(({ path }) => path),
    hz: null,
    sample_cost_us: { gpus: null, host: null },
    gpus: typeof name === 'string' ? [{ scope: 'gpu0', name }] : [],
    no_gpus: null,
    program: null,
    processes: [],
    pid_namespace: 'unknown',
  };
}

function noSamples({ id, manifest }: Session): InferscopeError {
  return new InferscopeError('E_USAGE', {
    what: `session ${id} has no samples of GPUs or host`,
    why: `It was made by ${manifest.kind}, and its tables telemetry and memory are empty.`,
    fix: 'Use a session of `inferscope monitor --record`, or record again.',
  });
}
