import { InferscopeError } from '../model/errors.js';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { analyzeServing } from '../facts/serving/serving.js';
import { loadTokenizer } from '../engines/onnx/tokenizer.js';
import { leftWords } from '../capture/bench/eta.js';
import { startLoadEta } from '../load/load-eta.js';
import { ratesOf } from '../load/load-shape.js';
import type { PromptTokenizer } from '../load/prompts.js';
import { probeServer } from '../load/probe.js';
import { partSeed } from '../load/random.js';
import { seededRandom } from '../model/random.js';
import { scrapeServer } from '../load/server-sampler.js';
import type { SweepPoint } from '../load/sweep.js';
import type { Document } from '../model/document.js';
import {
  type LoadPlan,
  maxEventLoopUtilization,
  type ServingResult,
  type Slo,
} from '../model/documents/serving.js';
import { toolVersion } from '../model/version.js';
import { ensureWritable } from '../session/home.js';
import { openSession } from '../session/open.js';
import {
  loadSequence,
  loadSize,
  type LoadOptions,
  type LoadSequence,
  type PlannedLoad,
} from './bench-serve-loads.js';
import { maxClientThreads, runServingPoint, type PointContext } from './bench-serve-point.js';
import { freshSeed, recordPromptSeed } from './bench-serve-seed.js';
import { targetOf, type TargetOptions } from './bench-serve-target.js';
import type { Progress } from './progress.js';
import { type Recorded, type Recording, recordSession } from '../record/record-session.js';
import { monotonicClock } from '../model/clock.js';
import { formatQuantity, plural } from '../vocabulary/format.js';
import { loadLabel } from '../vocabulary/loads.js';

export interface ServingCommandOptions extends TargetOptions, LoadOptions {
  inputLen: number;
  outputLen: number;
  tokenizer?: string;
  seed?: number;
  slo: Slo | null;
  threads?: number;
  metricsUrl?: string;
  probe: boolean;
  name?: string;
  tag: string[];
  quiet?: boolean;
}

/** Checks options and server, probes it, measures the loads into a session, and analyzes the session. */
export async function runServing(
  url: string,
  options: ServingCommandOptions,
  signal: AbortSignal,
  progress: Progress,
): Promise<{ document: Document<ServingResult>; interrupted: boolean }> {
  const home = ensureWritable();
  const loads = await loadSequence(options, options.slo !== null);
  const tokenizer = options.tokenizer === undefined ? undefined : await tokenizerAt(options.tokenizer);
  const target = await targetOf(url, options, signal);
  const metricsUrl = options.metricsUrl ?? `${new URL(target.baseUrl).origin}/metrics`;
  const scraped = await scrapeServer(metricsUrl);
  if (scraped === null && options.metricsUrl !== undefined)
    throw new InferscopeError('E_SERVER_RESPONSE', {
      what: `no metrics of a server at ${metricsUrl}`,
      why: 'The page does not respond, or has no metric of vLLM, SGLang, TGI, llama.cpp or inferscope serve.',
      fix: "Check --metrics-url, or leave it out: the server's queue is then not measured.",
    });
  const seed = options.seed ?? freshSeed();
  const promptSeed = { url: target.baseUrl, model: target.model, seed, input_len: options.inputLen };
  const probe = options.probe
    ? await probeServer(target, options, seededRandom(partSeed(freshSeed(), 'probe')), tokenizer, signal)
    : null;
  // The probe finds out whether the server has the model.
  progress.done(`${target.model} at ${target.baseUrl}`, scraped?.server ?? 'no /metrics');
  const plan: LoadPlan = {
    target: {
      url: target.baseUrl,
      api: target.api,
      model: target.model,
      server: scraped?.server ?? null,
      metrics_url: scraped ? metricsUrl : null,
    },
    prompts: {
      seed,
      seed_used_before: await recordPromptSeed(home.cache, promptSeed),
      ...promptLengths(options),
      tokenizer: options.tokenizer === undefined ? null : 'tokenizer.json',
    },
    slo: options.slo,
    probe,
    points: [],
  };
  const context: Omit<PointContext, 'originNs'> = {
    target,
    seed,
    tokenizer,
    slo: options.slo,
    inputLen: options.inputLen,
    outputLen: options.outputLen,
    threads: options.threads ?? null,
    metricsUrl: scraped ? metricsUrl : null,
  };
  const { id } = await recordSession(
    {
      label: `serve-${target.model}`,
      kind: 'bench',
      name: options.name ?? null,
      tags: options.tag,
      doing: 'save the load test',
    },
    (recording) => measure(recording, plan, context, loads, { signal, progress }),
  );
  return { document: await analyzeServing(await openSession(id, home)), interrupted: signal.aborted };
}

/** Lengths of all requests; null where a trace has one for each. */
export const promptLengths = ({
  trace,
  inputLen,
  outputLen,
}: Pick<ServingCommandOptions, 'trace' | 'inputLen' | 'outputLen'>): Pick<
  LoadPlan['prompts'],
  'input_len' | 'output_len'
> =>
  trace === undefined
    ? { input_len: inputLen, output_len: outputLen }
    : { input_len: null, output_len: null };

async function tokenizerAt(path: string): Promise<PromptTokenizer> {
  const found = await stat(path).catch(() => null);
  return loadTokenizer(found?.isDirectory() ? join(path, 'tokenizer.json') : path);
}

async function measure(
  recording: Recording,
  plan: LoadPlan,
  context: Omit<PointContext, 'originNs'>,
  { next, listed }: LoadSequence,
  { signal, progress }: { signal: AbortSignal; progress: Progress },
): Promise<Recorded & { result: object }> {
  const measured: SweepPoint[] = [];
  const eta = startLoadEta();
  const timeLeft = () => leftWords(eta.remainingS(listed.slice(measured.length + 1).map(loadSize)));
  let threads = context.threads;
  for (let load = next(measured); load !== null && !signal.aborted; load = next(measured)) {
    const id = `load-${String(plan.points.length + 1).padStart(2, '0')}`;
    const words = () => loadLabel(loadFacts(load!));
    eta.startLoad(loadSize(load));
    const run = await runServingPoint(
      recording.files,
      id,
      load,
      { ...context, originNs: recording.originNs, threads },
      {
        signal,
        onProgress: ({ done, failed, in_flight: inFlight, tokens }) => {
          eta.setAnswered(done);
          const counts = `${done} done, ${failed} failed, ${inFlight} in flight, ${tokens} chunks`;
          progress.update(words(), `${timeLeft()}${counts}`);
        },
      },
    );
    plan.points.push(run.facts);

    const { client } = run.facts;
    const rate = `${formatQuantity(run.result.output_rate, 'tok/s')}${client.bound ? ', CLIENT-BOUND' : ''}`;
    progress.done(words(), rate);
    // One thread was not enough: repeat the load with more, unless --threads was given.
    const moreThreads = Math.min(maxClientThreads(), 2 * client.threads);
    if (
      client.bound &&
      client.event_loop_utilization > maxEventLoopUtilization &&
      context.threads === null &&
      moreThreads > client.threads
    )
      threads = moreThreads;
    else measured.push(run.result);
  }
  return { ...(await recordLoads(recording, plan, signal.aborted)), result: {} };
}

function loadFacts({ shape, concurrency, requests }: PlannedLoad) {
  const base = { warmup_requests: 0, ramp_s: 0, seconds: null, requests };
  return { ...base, kind: shape.kind, concurrency: concurrency ?? 0, ...ratesOf(shape) };
}

async function recordLoads(recording: Recording, plan: LoadPlan, interrupted: boolean): Promise<Recorded> {
  await recording.saveJson('load-plan', plan);
  const { target, prompts } = plan;
  return {
    title: `${target.model} · ${target.server ?? 'OpenAI-compatible server'} · ${plural(plan.points.length, 'load')}`,
    status: interrupted ? 'interrupted' : 'complete',
    workload: {
      model: null,
      engine: {
        name: target.server ?? 'openai-compatible',
        version: null,
        options: { url: target.url, api: target.api, model: target.model, seed: prompts.seed },
      },
      device: 'server',
      threads: null,
      batch_size: null,
      input_len: prompts.input_len,
      output_len: prompts.output_len,
      tensor_parallel_size: 1,
    },
    executions: plan.points.map(({ execution_id, begin_ns, end_ns }) => ({
      execution_id,
      purpose: 'clean' as const,
      command: [],
      exit_code: 0,
      start_ns: begin_ns,
      end_ns,
    })),
    captures: plan.points.map(({ execution_id }) => ({
      capture_id: execution_id,
      execution_id,
      tool: { name: 'inferscope bench serve', version: toolVersion },
      importer: 'load',
      clock: monotonicClock,
    })),
    issues: [],
  };
}
