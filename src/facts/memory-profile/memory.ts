import { saveHeadline } from '../../session/headline.js';
import { document, type Document, type Issue } from '../../model/document.js';
import type { MemoryProfile } from '../../model/documents/memory-profile.js';
import type { MemoryResult } from '../../model/documents/memory-result.js';
import type { Workload } from '../../model/manifest.js';
import { memoryPlanSchema, type MemoryPlan } from '../../model/memory-plan.js';
import type { VllmLogFacts } from '../../model/vllm-log.js';
import type { Session } from '../../session/open.js';
import { readArtifactJson, readPlan } from '../artifact.js';
import { withAliases } from './aliases.js';
import { breakdownOf, type MeasuredTotal } from './breakdown.js';
import { dtypesOfRun } from './dtypes.js';
import { engineType } from './engine-type.js';
import { expectedMemory } from './expected.js';
import { readLatencyStats } from './latency.js';
import { readImportedMemory } from './imported.js';
import { readKvPool, type KvPool } from './kv-pool.js';
import { modelOf } from './model-info.js';
import type { Place } from './part.js';
import { placesOf } from './places.js';
import { gb, gpuPoints, gpusOfRun, hostPoints, ownPids, type MemoryPoints } from './points.js';
import { readMemoryRows, type MemoryRows } from './rows.js';
import { otherProcessIssues, measureTotal } from './total.js';
import { declaredDType } from '../../llm/quantization.js';
import { allocationsOf, allocatorMoments, fragmentationOf, timelineOf } from './timeline.js';
import { cutEnd } from '../../vocabulary/cut.js';
import { formatGb } from '../../vocabulary/format.js';
import { sessionOfKind } from '../session-identity.js';

/**
 * Profile (schema 2.0), timeline and allocator facts of a memory session, always computed from its tables. An imported
 * profile is returned as it is in its file.
 * @throws E_USAGE if the session has no memory profile
 */
export async function analyzeMemory(session: Session): Promise<Document<MemoryResult>> {
  const imported = await readImportedMemory(session);
  if (imported) {
    saveTotal(session, imported.data.profile.memory_breakdown.total_measured_bytes);
    return imported;
  }
  const plan = await readPlan(session, 'memory', memoryPlanSchema);
  const { rows, pool, log } = await readRecordedMemory(session, plan);
  const workload = withModel(session.manifest.workload, plan);
  const enginePids = ownPids(rows, plan);
  const onHost = workload?.device === 'cpu' && plan.where === 'host';
  const gpus = onHost ? [] : gpusOfRun(rows, plan, enginePids);
  const points = gpus.length > 0 ? gpuPoints(rows, plan, gpus) : hostPoints(rows, plan);
  const model = modelOf(workload, plan);
  const { architecture, kvHeadsKnown } = model;
  const estimate = expectedMemory(workload, plan, { architecture, gpus, log, pool });
  const measured = measureTotal(rows, plan, { gpus, enginePids, points });
  const placeFacts = { gpus, points, enginePids, measured, log, estimate, workload, pool, kvHeadsKnown };
  const places = placesOf(rows, plan, placeFacts);
  const issues = [
    // `runIssues` reports the failure in full.
    ...session.issues.filter(({ code }) => plan.failure === null || !failureCodes.has(code)),
    ...model.issues,
    ...otherProcessIssues(rows, plan, { gpus, enginePids, points }),
    ...runIssues(plan, places, measured),
  ];
  // The estimate is for a complete run, so it does not apply to one that stopped early.
  const breakdown = breakdownOf(places, measured, plan.failure === null ? estimate : null, {
    contradicted: model.issues.some(({ code }) => code === 'dimension_disagrees'),
  });
  const latency = await readLatencyStats(session);
  const profile: MemoryProfile = {
    ...measuredFields({ session, plan, rows, gpus, points, issues }),
    model_info: {
      ...model.info,
      ...dtypesOfRun(rows, plan, { workload, log, estimate }),
      ...(workload?.model ? { config: workload.model.config, weights: workload.model.weights } : {}),
    },
    memory_breakdown: { ...breakdown, kv_pool: pool },
    latency_stats: latency.stats,
    engine_metadata: {
      engine_version: log?.version?.value ?? workload?.engine.version ?? null,
      engine_type: engineType(workload, plan),
      ...(workload ? { engine_args: workload.engine.options } : {}),
    },
    missing: {},
  };
  const latencyWhy = latency.why !== null && plan.failure ? plan.failure.what : latency.why;
  profile.missing = missingOf(profile, points, latencyWhy, plan);
  Object.assign(profile, withAliases(profile));
  saveTotal(session, measured?.bytes ?? null);
  return document(
    'memory',
    '1.0',
    {
      session: sessionOfKind(session),
      profile,
      timeline: timelineOf(rows, points, gpus),
      allocator: allocatorMoments(rows),
      fragmentation: fragmentationOf(rows),
      allocations: allocationsOf(rows),
    },
    issues,
  );
}

/** Memory rows, the KV pool, and the facts that vLLM logged. */
async function readRecordedMemory(
  session: Session,
  plan: MemoryPlan,
): Promise<{ rows: MemoryRows; pool: KvPool | null; log: VllmLogFacts | null }> {
  const logFacts = await readArtifactJson(session, 'vllm-log-facts', 'the facts from the vLLM log');
  const log = logFacts as VllmLogFacts | null;
  const database = await session.connect();
  try {
    return {
      rows: await readMemoryRows(database, plan),
      pool: await readKvPool(database, plan, log),
      log,
    };
  } finally {
    await database.close();
  }
}

function saveTotal(session: Session, total: number | null): void {
  saveHeadline(
    session,
    total === null
      ? null
      : { text: `${formatGb(total)} total`, figure: { name: 'memory', value: total, unit: 'B' } },
  );
}

/**
 * Adds the model of a server, which reports only a name: dimensions from the config found on this machine, dtype as
 * requested, else as declared in the config, else float16.
 */
function withModel(
  workload: Workload | null,
  { model_config: config, config: requestedConfig }: MemoryPlan,
): Workload | null {
  if (!workload || workload.model || config === null) return workload;
  const { model: name, quantization } = requestedConfig;
  const dtype = requestedConfig.dtype ?? declaredDType(config) ?? 'float16';
  const sizes = { num_parameters: null, weight_bytes: null };
  return { ...workload, model: { name, config, dtype, quantization, weights: 'unknown', ...sizes } };
}

const failureCodes = new Set(['launch_failed', 'workload_error']);

type MeasuredField = 'profiler_version' | 'schema_version' | 'units' | 'metadata' | 'memory_measurements';

function measuredFields({
  session,
  plan,
  rows,
  gpus,
  points,
  issues,
}: {
  session: Session;
  plan: MemoryPlan;
  rows: MemoryRows;
  gpus: readonly number[];
  points: MemoryPoints;
  issues: readonly Issue[];
}): Pick<MemoryProfile, MeasuredField> {
  const { baseline, post_warmup, peak } = points;
  const increase = (to: number | null, from: number | null) =>
    to === null || from === null ? null : to - from;
  const increaseBytes = increase(peak.total_bytes, baseline.total_bytes);
  const warmupIncreaseBytes = increase(post_warmup.total_bytes, baseline.total_bytes);
  const growthBytes = increase(peak.total_bytes, post_warmup.total_bytes);
  const samples = gpus.length > 0 ? (rows.used.get(gpus[0]!) ?? []) : rows.rss;
  const seconds = samples.length < 2 ? null : (samples.at(-1)!.t_ns - samples[0]!.t_ns) / 1e9;
  return {
    profiler_version: '2.0',
    schema_version: '2.0',
    units: { gb: '10^9 bytes' },
    metadata: {
      timestamp: session.manifest.started_at,
      session_id: session.id,
      config: plan.config,
      where: plan.where,
      container_name: plan.container_name,
      status: plan.failure === null && session.manifest.status === 'complete' ? 'measured' : 'partial',
      duration_s: (plan.ended_ns - plan.launch_ns) / 1e9,
      sampling: {
        source: gpus.length > 0 ? (plan.sampler.source ?? 'GPU driver') : '/proc/<pid>/status',
        samples: samples.length,
        hz: seconds ? (samples.length - 1) / seconds : null,
      },
      gpus: plan.gpus.filter(({ gpu }) => gpus.includes(gpu)),
      issues: issues.filter(({ severity }) => severity !== 'info').map(({ code, text }) => ({ code, text })),
    },
    memory_measurements: {
      baseline,
      post_warmup,
      peak,
      memory_increase_gb: gb(increaseBytes),
      memory_increase_bytes: increaseBytes,
      warmup_increase_gb: gb(warmupIncreaseBytes),
      warmup_increase_bytes: warmupIncreaseBytes,
      growth_gb: gb(growthBytes),
      growth_bytes: growthBytes,
    },
  };
}

function runIssues(plan: MemoryPlan, places: readonly Place[], measured: MeasuredTotal | null): Issue[] {
  const issues: Issue[] = [];
  if (plan.failure) {
    const { what, why } = plan.failure;
    const text = `The run stopped early: ${what}. ${shorten(why)} Points that it did not reach are missing.`;
    issues.push({ code: 'ended_early', severity: 'error', text });
  }
  if (measured === null) {
    const why = plan.sampler.why ?? 'no engine process was found';
    issues.push({ code: 'not_measured', severity: 'warning', text: `Memory was not measured: ${why}` });
  }
  if (places.every(({ parts }) => parts.length === 0)) {
    const text = "Memory by component is not known: neither the engine nor the model's dimensions give it.";
    issues.push({ code: 'no_breakdown', severity: 'warning', text });
  }
  return issues;
}

/** The first three sentences, at most 400 characters, because allocator errors are long. */
function shorten(text: string): string {
  const sentences = text.split(/(?<=\.) (?=[A-Z])/);
  return cutEnd(sentences.slice(0, 3).join(' '), 400);
}

/** The reason for each null in the profile, by field path. */
function missingOf(
  profile: MemoryProfile,
  points: MemoryPoints,
  latencyWhy: string | null,
  plan: MemoryPlan,
): Record<string, string> {
  const missing: Record<string, string> = {};
  for (const [point, why] of Object.entries(points.missing)) missing[`memory_measurements.${point}`] = why;
  if (latencyWhy !== null) missing['latency_stats'] = latencyWhy;
  else if (profile.latency_stats.mean_tpot_ms === null)
    missing['latency_stats.mean_tpot_ms'] = 'the engine reports only total times, or one token was generated';
  if (profile.memory_breakdown.total_measured_bytes === null)
    missing['memory_breakdown.total_measured_gb'] = plan.sampler.why ?? 'the peak was not sampled';
  for (const name of ['model_weights', 'kv_cache', 'activations'] as const)
    if (profile.memory_breakdown[`${name}_gb`] === null)
      missing[`memory_breakdown.${name}_gb`] =
        "not available from the engine, its log or the model's dimensions";
  if (profile.model_info.num_parameters === null)
    missing['model_info.num_parameters'] = 'not known for this architecture; set it with --model-params';
  return missing;
}
