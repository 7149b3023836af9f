import { availableParallelism } from 'node:os';
import process from 'node:process';
import { openGpus } from '../capture/telemetry-gpus.js';
import { startDeviceSampler } from '../capture/run/device-sampler.js';
import { startHostSampler } from '../capture/telemetry.js';
import { clientVerdict } from '../load/client-verdict.js';
import { ratesOf } from '../load/load-shape.js';
import { medianTtftMs, sendLags, sweepPoint } from '../load/point-figures.js';
import { planRequests } from '../load/plan-requests.js';
import type { PromptTokenizer } from '../load/prompts.js';
import { requestRow } from '../load/request-row.js';
import type { PointControl } from '../load/run-point.js';
import { startServerSampler } from '../load/server-sampler.js';
import type { SweepPoint } from '../load/sweep.js';
import type { LoadTarget } from '../load/target.js';
import { runLoad } from '../load/threads.js';
import type { LoadPlan, Slo } from '../model/documents/serving.js';
import type { SessionFiles } from '../session/session-files.js';
import type { PlannedLoad } from './bench-serve-loads.js';

export interface PointContext {
  target: LoadTarget;
  inputLen: number;
  outputLen: number;
  seed: number;
  tokenizer: PromptTokenizer | undefined;
  slo: Slo | null;
  /** As requested; null starts with one thread and adds more when one is not enough. */
  threads: number | null;
  metricsUrl: string | null;
  originNs: number;
}

interface PointResult {
  facts: LoadPlan['points'][number];
  result: SweepPoint;
}

const host = 'localhost';

/** Runs one load level and writes its requests and telemetry into the session. */
export async function runServingPoint(
  session: SessionFiles,
  id: string,
  load: PlannedLoad,
  context: PointContext,
  control: PointControl,
): Promise<PointResult> {
  const { target, originNs, tokenizer, inputLen, outputLen, seed } = context;
  const planned = planRequests({
    ...load,
    inputLen,
    outputLen,
    seed,
    part: id,
    ...(tokenizer ? { tokenizer } : {}),
  });
  const keys: RowKeys = { execution_id: id, capture_id: id, host };
  const outcome = await whileSampling(session, keys, context, () =>
    runLoad(
      {
        target,
        requests: planned,
        concurrency: load.concurrency,
        loop: load.shape.kind === 'closed' ? 'closed' : 'open',
        ramp_s: load.shape.kind === 'closed' ? load.shape.ramp_s : 0,
        seconds: load.seconds,
        discard_text: tokenizer === undefined,
      },
      context.threads ?? 1,
      control,
    ),
  );
  const prompts = new Map(planned.map((request) => [request.index, request.input_tokens]));
  const rows = outcome.exchanges.map((exchange) =>
    requestRow(exchange, keys, originNs, {
      prompt: tokenizer ? (index) => prompts.get(index) ?? null : null,
      text: tokenizer ? (text) => tokenizer.encode(text).length : null,
    }),
  );
  for (const row of rows) session.sink.append('requests', row);
  return {
    facts: {
      execution_id: id,
      load: {
        kind: load.shape.kind,
        concurrency: load.concurrency,
        ...ratesOf(load.shape),
        requests: planned.length,
        warmup_requests: planned.filter(({ warmup }) => warmup).length,
        ramp_s: load.shape.kind === 'closed' ? load.shape.ramp_s : 0,
        seconds: Number.isFinite(load.seconds) ? load.seconds : null,
      },
      begin_ns: outcome.begin_ns - originNs,
      end_ns: outcome.end_ns - originNs,
      client: clientVerdict(outcome.threads, sendLags(outcome, load), medianTtftMs(rows)),
    },
    result: sweepPoint(rows, load, outcome, context.slo, control.signal.aborted),
  };
}

type RowKeys = { execution_id: string; capture_id: string; host: string };

/** Samples host, GPUs and server while `work` runs, and writes the samples into the session. */
async function whileSampling<T>(
  session: SessionFiles,
  keys: RowKeys,
  { metricsUrl, originNs }: PointContext,
  work: () => Promise<T>,
): Promise<T> {
  const { gpus } = await openGpus();
  const hostSampler = startHostSampler({ pid: process.pid, keys: { ...keys, rank: 0 } });
  const deviceSampler = gpus === null ? null : startDeviceSampler(gpus, keys);
  const serverSampler = metricsUrl === null ? null : startServerSampler(metricsUrl);
  try {
    return await work();
  } finally {
    const hostRows = hostSampler.stop();
    const deviceRows = deviceSampler?.stop() ?? { telemetry: [], memory: [] };
    const readings = (await serverSampler?.stop()) ?? [];
    for (const row of [...hostRows.telemetry, ...deviceRows.telemetry])
      session.sink.append('telemetry', { ...row, t_ns: row.t_ns! - originNs });
    for (const row of [...hostRows.memory, ...deviceRows.memory])
      session.sink.append('memory', { ...row, t_ns: row.t_ns! - originNs });
    for (const { t_ns, reading } of readings)
      for (const [metric, value] of Object.entries(reading))
        session.sink.append('telemetry', {
          ...keys,
          rank: 0,
          t_ns: t_ns - originNs,
          scope: 'server',
          metric,
          value,
        });
    gpus?.close();
  }
}

/** More threads would compete for cores with each other and with a server on this machine. */
export function maxClientThreads(): number {
  return Math.max(1, availableParallelism() - 1);
}
