import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import process from 'node:process';
import { InferscopeError } from '../../model/errors.js';
import { packageRoot } from '../../model/installation.js';
import type { Execution } from '../../model/manifest.js';
import { evaluatorVariable, hooksVariable } from '../../model/outer-run.js';
import { requireNcu } from '../tools/ncu.js';
import { nsysHasOption, requireNsys } from '../tools/nsys.js';
import { findHotKernels } from './hot-kernels.js';
import { ncuArguments, ncuBounds } from './ncu-arguments.js';
import { mayForkEngine } from './forked-engine.js';
import { nsysArguments, nsysEnvironment, traceForksOption } from './nsys-arguments.js';
import type { FileKind, RunExecution, RunOptions } from './run-options.js';

/** How one execution is started. */
interface PreparedExecution {
  /** The profiler's command line, in front of the program's. */
  prefix: string[];
  environment: Record<string, string>;
  bounds: string | null;
}

export interface PlannedExecution {
  execution_id: string;
  purpose: Execution['purpose'];
  tool: { name: string; version: string | null; path: string } | null;
  /** The files of its folder to store, and their kinds. */
  kinds: readonly [RegExp, FileKind][];
  /** Grace period for SIGINT and SIGTERM after a timeout, in which profilers write their report. */
  graceMs: number;
  /** @param earlier finished executions: ncu uses the hot kernels of the nsys one */
  prepare(folder: string, earlier: readonly RunExecution[]): Promise<PreparedExecution>;
}

const outputFiles: [RegExp, FileKind][] = [
  [/^record\.jsonl$/, 'record'],
  [/^stdout\.log$/, 'stdout'],
  [/^stderr\.log$/, 'stderr'],
];
const programGraceMs = 10_000;
const profilerGraceMs = 60_000;

/**
 * @throws E_TOOL_MISSING when a requested profiler, or its Python part, is missing; E_USAGE for an invalid INFERSCOPE_TORCH_OPTIONS
 */
export async function planExecutions(options: RunOptions): Promise<PlannedExecution[]> {
  const planned: PlannedExecution[] = [];
  // ncu comes after nsys because it profiles the kernels that nsys found to be hot.
  for (const evaluator of ['none', 'nsys', 'torch', 'ncu'] as const) {
    if (!options.evaluators.includes(evaluator)) continue;
    planned.push(await plans[evaluator](options));
  }
  if (options.gemmLog) planned.push(planGemmLog());
  return planned;
}

const plans = { none: planClean, nsys: planNsys, torch: planTorch, ncu: planNcu };

function planClean({ hooks }: RunOptions): PlannedExecution {
  return {
    execution_id: 'clean',
    purpose: 'clean',
    tool: null,
    kinds: outputFiles,
    graceMs: programGraceMs,
    prepare: async () => ({ prefix: [], environment: withProbe('none', hooks), bounds: null }),
  };
}

async function planNsys({ nsys: nsysOptions, hooks, command }: RunOptions): Promise<PlannedExecution> {
  const { path, version } = await requireNsys('run --evaluator nsys');
  const forks = mayForkEngine(command) && (await nsysHasOption(path, traceForksOption));
  return {
    execution_id: 'nsys',
    purpose: 'profiled',
    tool: { name: 'nsys', version, path },
    kinds: [...outputFiles, [/\.nsys-rep$/, 'nsys-rep']],
    graceMs: profilerGraceMs,
    prepare: async (folder) => ({
      prefix: [path, ...nsysArguments(join(folder, 'nsys'), nsysOptions, forks)],
      environment: { ...withProbe('nsys', hooks), ...nsysEnvironment(nsysOptions) },
      bounds: rangeText(nsysOptions.captureRange),
    }),
  };
}

function rangeText(range: RunOptions['nsys']['captureRange']): string | null {
  if (range === null) return null;
  const where =
    range.kind === 'nvtx' ? `the first NVTX range ${range.name}` : 'cudaProfilerStart to cudaProfilerStop';
  return `nsys: only ${where} was recorded; loading and warm-up outside it are not in the timeline.`;
}

async function planNcu(options: RunOptions): Promise<PlannedExecution> {
  const { path, version } = await requireNcu('run --evaluator ncu');
  return {
    execution_id: 'ncu',
    purpose: 'counters',
    tool: { name: 'ncu', version, path },
    kinds: [...outputFiles, [/\.ncu-rep$/, 'ncu-rep']],
    graceMs: profilerGraceMs,
    async prepare(folder, earlier) {
      const choice =
        options.ncu.kernel === null ? (options.kernels ?? (await findHotKernelsIn(earlier, options))) : null;
      return {
        prefix: [path, ...ncuArguments(join(folder, 'ncu'), options.ncu, choice)],
        environment: withProbe('ncu', options.hooks),
        bounds: ncuBounds(options.ncu, choice),
      };
    },
  };
}

async function findHotKernelsIn(earlier: readonly RunExecution[], options: RunOptions) {
  const report = earlier.flatMap(({ files }) => files).find(({ kind }) => kind === 'nsys-rep');
  if (!report || options.signal.aborted) return null;
  const { path } = await requireNsys('find hot kernels');
  return findHotKernels(path, report.path);
}

/** Environment that puts our sitecustomize.py first in every Python process: it starts the torch probe and marks stages. */
function withProbe(evaluator: string, hooks: boolean): Record<string, string> {
  return {
    ...(hooks ? {} : { [hooksVariable]: 'off' }),
    PYTHONPATH: [probeFolder(), process.env['PYTHONPATH']].filter(Boolean).join(delimiter),
    [evaluatorVariable]: evaluator,
  };
}

const probeFolder = () => join(packageRoot(), 'python', 'inferscope_probe');

async function planTorch(options: RunOptions): Promise<PlannedExecution> {
  const probe = probeFolder();
  if (!existsSync(join(probe, 'sitecustomize.py'))) {
    throw new InferscopeError('E_TOOL_MISSING', {
      what: 'the Python probe of inferscope is not in this installation',
      why: `${probe} has no sitecustomize.py, which --evaluator torch puts into the program.`,
      fix: 'Reinstall inferscope.',
    });
  }
  const torchOptions = { ...torchOptionsFromEnvironment(), ...options.torch };
  return {
    execution_id: 'torch',
    purpose: 'profiled',
    tool: { name: 'torch', version: null, path: probe },
    kinds: [...outputFiles, [/^kineto-.*\.json(\.gz)?$/, 'kineto']],
    graceMs: profilerGraceMs,
    prepare: async (folder) => ({
      prefix: [],
      environment: {
        ...withProbe('torch', options.hooks),
        INFERSCOPE_TORCH_TRACE: folder,
        INFERSCOPE_TORCH_OPTIONS: JSON.stringify(torchOptions),
      },
      bounds: null,
    }),
  };
}

/** Options without a flag, as JSON: {"device":"cpu"}, max_seconds (inferscope_torch.py). */
function torchOptionsFromEnvironment(): Record<string, unknown> {
  const text = process.env['INFERSCOPE_TORCH_OPTIONS'];
  if (!text) return {};
  try {
    const options: unknown = JSON.parse(text);
    if (typeof options === 'object' && options !== null) return { ...options };
  } catch {
    // Invalid JSON: reported below.
  }
  throw new InferscopeError('E_USAGE', {
    what: 'INFERSCOPE_TORCH_OPTIONS is not a JSON object',
    why: `It is ${text.slice(0, 200)}`,
    fix: `Example: INFERSCOPE_TORCH_OPTIONS='{"max_seconds":600}' inferscope run --evaluator torch -- …`,
  });
}

/** Logging every call is slow, so this execution is not timed. One file per process: %i is the pid. */
function planGemmLog(): PlannedExecution {
  return {
    execution_id: 'gemm-log',
    purpose: 'gemm-log',
    tool: { name: 'cublas-log', version: null, path: '' },
    kinds: [...outputFiles, [/^cublaslt-.*\.log$/, 'cublaslt-log'], [/^cublas-.*\.log$/, 'cublas-log']],
    graceMs: programGraceMs,
    prepare: async (folder) => ({
      prefix: [],
      environment: {
        [evaluatorVariable]: 'gemm-log',
        CUBLASLT_LOG_LEVEL: '5',
        CUBLASLT_LOG_FILE: join(folder, 'cublaslt-%i.log'),
        CUBLAS_LOGINFO_DBG: '1',
        CUBLAS_LOGDEST_DBG: join(folder, 'cublas-%i.log'),
      },
      bounds: null,
    }),
  };
}
