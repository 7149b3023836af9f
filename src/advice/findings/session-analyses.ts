import type { BenchResult } from '../../model/documents/bench.js';
import type { CountersResult } from '../../model/documents/counters.js';
import type { MonitorResult } from '../../model/documents/monitor.js';
import type { ServingResult } from '../../model/documents/serving.js';
import type { UtilizationStage } from '../../model/documents/utilization.js';
import type { Issue } from '../../model/document.js';
import { InferscopeError } from '../../model/errors.js';
import { hasSubject } from '../../model/subjects.js';
import type { Session } from '../../session/open.js';
import { analyzeBench } from '../../facts/bench/bench.js';
import { analyzeCounters } from '../../facts/counters/counters.js';
import { analyzeMonitor } from '../../facts/monitor/monitor.js';
import { analyzeServing } from '../../facts/serving/serving.js';
import { readRecordedUtilization } from '../../facts/utilization/utilization.js';
import type { FindingContext } from './rule.js';

type WithIssues<T> = { data: T; issues: Issue[] };

/**
 * Analyses of other sources, each computed once and shared by the rules: a rule turns their result into a finding and does not
 * judge again. Null if the session has no data for one.
 */
interface Analyses {
  bench?: Promise<WithIssues<BenchResult> | null>;
  counters?: Promise<CountersResult | null>;
  monitor?: Promise<MonitorResult | null>;
  serving?: Promise<WithIssues<ServingResult> | null>;
  recorded?: Promise<UtilizationStage[]>;
}

const analysesBySession = new WeakMap<Session, Analyses>();

function analysesOf({ session }: FindingContext): Analyses {
  const analyses = analysesBySession.get(session) ?? {};
  analysesBySession.set(session, analyses);
  return analyses;
}

/** Distributions and flags of a benchmark. */
export function benchOf(context: FindingContext): Promise<WithIssues<BenchResult> | null> {
  const analyses = analysesOf(context);
  analyses.bench ??=
    hasSubject(context.manifest, 'bench') && context.manifest.workload
      ? analyzeBench(context.session)
      : Promise.resolve(null);
  return analyses.bench;
}

/** Hardware counters by kernel. */
export function countersOf(context: FindingContext): Promise<CountersResult | null> {
  const analyses = analysesOf(context);
  analyses.counters ??= context.has('counters')
    ? analyzeCounters(context.session).then(({ data }) => data)
    : Promise.resolve(null);
  return analyses.counters;
}

/** Clocks, power, idle times: for every session with samples, not only `inferscope monitor`. */
export function monitorOf(context: FindingContext): Promise<MonitorResult | null> {
  const analyses = analysesOf(context);
  analyses.monitor ??= context.has('telemetry')
    ? analyzeMonitor(context.session).then(({ data }) => data, withoutSamples)
    : Promise.resolve(null);
  return analyses.monitor;
}

/** Telemetry may contain only a server's metrics page. */
function withoutSamples(error: unknown): null {
  if (error instanceof InferscopeError && error.code === 'E_USAGE') return null;
  throw error;
}

/** Whether a stage timed without a profiler is compute- or memory-bound; null if not known. */
export async function boundOfStage(
  context: FindingContext,
  kind: string,
): Promise<UtilizationStage['bound']> {
  const analyses = analysesOf(context);
  analyses.recorded ??= readRecordedUtilization(context.session, context.database);
  return (await analyses.recorded).find((stage) => stage.kind === kind)?.bound ?? null;
}

/** A load test: its points and issues. */
export function servingOf(context: FindingContext): Promise<WithIssues<ServingResult> | null> {
  const analyses = analysesOf(context);
  analyses.serving ??= hasSubject(context.manifest, 'load')
    ? analyzeServing(context.session)
    : Promise.resolve(null);
  return analyses.serving;
}
