import { modelNameOf } from '../model-name.js';
import { environmentFacts } from '../environment.js';
import { document, type Document, type Issue } from '../../model/document.js';
import { sentence } from '../../vocabulary/sentence-template.js';
import {
  type BenchPlan,
  type BenchResult,
  type BenchVariant,
  benchVersion,
} from '../../model/documents/bench.js';
import { InferscopeError } from '../../model/errors.js';
import type { MissingFigure } from '../../model/figure.js';
import type { ManifestData, Workload } from '../../model/manifest.js';
import type { Session } from '../../session/open.js';
import type { SessionDatabase } from '../../session/query.js';
import { readStoredRoofline } from '../artifact.js';
import { deviceOf } from '../device.js';
import { decoderModel, type WorkloadModel } from '../model-work.js';
import { readStoredGpuRoofline } from '../roofs.js';
import type { UtilizationRoofs } from '../utilization/roofs.js';
import { benchAnswers } from './answers.js';
import { benchFits } from './fits.js';
import { variantFlags } from './flags.js';
import { onCpu } from './machine.js';
import { readBenchPlan } from './plan.js';
import { pointResult } from './point.js';
import { roofsOf, usesGraphs } from './roof.js';
import { readBenchRows } from './rows.js';
import { readBenchTelemetry } from './sampled.js';
import { readBenchSeries } from './series.js';
import { variantAnswers } from './variants.js';
import { asClause } from './words.js';
import { sessionOfKind } from '../session-identity.js';

interface Context {
  session: Session;
  plan: BenchPlan;
  workload: Workload;
  model: WorkloadModel | MissingFigure;
  roofs: UtilizationRoofs | MissingFigure;
}

/**
 * Results of a benchmark: distributions, throughput, device, machine and roofline of every point, growth with each size,
 * and answers in words. One execution is one variant; nothing is summed over executions.
 * @throws E_USAGE if the session has no benchmark
 */
export async function analyzeBench(session: Session): Promise<Document<BenchResult>> {
  const plan = await readBenchPlan(session);
  const { manifest } = session;
  const { workload } = manifest;
  if (!workload) {
    throw new InferscopeError('E_USAGE', {
      what: `session ${session.id} does not record what it ran`,
      why: 'It stopped before the engine reported its model.',
      fix: 'Run the benchmark again; the log in its artifacts shows why it stopped.',
    });
  }
  const rooflines = { cpu: await readStoredRoofline(session), gpu: await readStoredGpuRoofline(session) };
  const roofs = roofsOf({ workload, hardware: manifest.hardware }, rooflines);
  const context: Context = { session, plan, workload, model: decoderModel(workload), roofs };
  const database = await session.connect();
  try {
    const variants: BenchVariant[] = [];
    for (const variant of plan.variants) variants.push(await variantOf(database, variant, context));
    const result: BenchResult = {
      session: sessionOfKind(session),
      parts: plan.parts,
      engine: engineOf(workload, manifest),
      protocol: protocolRun(plan, variants),
      variants,
      answers: variantAnswers(variants),
      not_measured: plan.not_measured,
      telemetry: await readBenchSeries(database),
      environment: environmentFacts(manifest),
    };
    return document('bench', benchVersion, result, [...session.issues, ...benchIssues(result)]);
  } finally {
    await database.close();
  }
}

/**
 * The protocol with completed launches and repeats, the maximum over all points. A stopped run has fewer than requested,
 * and an engine may choose its own number.
 */
function protocolRun({ protocol }: BenchPlan, variants: readonly BenchVariant[]): BenchResult['protocol'] {
  const repeats = Math.max(0, ...variants.flatMap(({ points }) => points.flatMap(repeatsOfLaunches)));
  if (repeats === 0) return protocol;
  return { ...protocol, launches: Math.max(...variants.map(({ launches }) => launches)), repeats };
}

/** Timed repeats per launch of a point. */
function repeatsOfLaunches({ repeats = [] }: BenchVariant['points'][number]): number[] {
  const counts = new Map<number, number>();
  for (const { launch } of repeats) counts.set(launch, (counts.get(launch) ?? 0) + 1);
  return [...counts.values()];
}

async function variantOf(
  database: SessionDatabase,
  { execution_id, label, engine_args, points: facts }: BenchPlan['variants'][number],
  { session, plan, workload, model, roofs }: Context,
): Promise<BenchVariant> {
  const { manifest } = session;
  const rows = await readBenchRows(database, execution_id);
  const telemetry = await readBenchTelemetry(database, execution_id, workload.tensor_parallel_size);
  const launches = new Set([...rows.iterations, ...rows.points].map(({ launch }) => launch));
  const graphs = usesGraphs(workload, engine_args);
  const pointContext = {
    workload,
    plan,
    model,
    roofs,
    telemetry,
    graphs,
    launches: launches.size,
    status: manifest.status,
  };
  const points = facts.map((point) => pointResult(point, rows, pointContext));
  const fits = benchFits(points);
  const used = await readUsedBefore(database, execution_id);
  const flags = variantFlags(points, {
    workload,
    plan,
    command: manifest.command,
    hardware: manifest.hardware,
    usedBefore: used.filter(({ device }) => telemetry.gpus.includes(`gpu${device}`)),
  });
  const timed = new Set(rows.iterations.filter(({ warmup }) => !warmup).map(({ launch }) => launch));
  return {
    execution_id,
    label,
    engine_args,
    launches: timed.size,
    points,
    fits,
    answers: benchAnswers(points, fits),
    flags,
  };
}

/** Memory of each GPU at the first sample, if taken before the engine was loaded and the first repeat started. */
function readUsedBefore(
  database: SessionDatabase,
  executionId: string,
): Promise<{ device: number; bytes: number }[]> {
  return database.query(
    `SELECT device, arg_min(bytes, t_ns) AS bytes FROM memory
     WHERE execution_id = $1 AND kind = 'used' AND device IS NOT NULL
       AND t_ns < (SELECT min(start_ns) FROM (SELECT start_ns FROM stages WHERE execution_id = $1 AND kind = 'load'
                                              UNION ALL SELECT start_ns FROM iterations WHERE execution_id = $1))
     GROUP BY device ORDER BY device`,
    [executionId],
  );
}

function engineOf(workload: Workload, { hardware }: ManifestData): BenchResult['engine'] {
  const { model, engine, device, threads, tensor_parallel_size } = workload;
  const cpu = hardware['cpu_model'];
  return {
    name: engine.name,
    version: engine.version,
    model: modelNameOf(workload) ?? 'unknown model',
    dtype: model?.dtype ?? null,
    quantization: model?.quantization ?? null,
    weights: model?.weights ?? 'unknown',
    device,
    device_name: onCpu(workload)
      ? typeof cpu === 'string'
        ? cpu
        : null
      : deviceOf({ workload, hardware }).name,
    tensor_parallel_size,
    threads,
  };
}

function benchIssues({ variants, session }: BenchResult): Issue[] {
  const issues: Issue[] = [];
  const points = variants.flatMap((variant) => variant.points);
  const measured = points.filter(({ outcome }) => outcome === 'measured').length;
  if (measured === 0 && points.length > 0) {
    issues.push({
      code: 'nothing_measured',
      severity: 'error',
      text: `No point was measured: ${asClause(points[0]!.text ?? 'no launch reached one')}.`,
    });
  } else if (measured < points.length) {
    issues.push({
      code: 'points_missing',
      severity: 'warning',
      ...sentence`${points.length - measured} of ${points.length} points were not measured${session.status === 'interrupted' ? ': the run was stopped' : ''}.`,
      count: points.length - measured,
    });
  }
  if (measured > 0 && variants.every(({ launches }) => launches < 2)) {
    issues.push({
      code: 'one_launch',
      severity: 'info',
      text: 'There was one launch: intervals cover its repeats and do not predict the next process.',
    });
  }
  return issues;
}
