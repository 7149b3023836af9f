import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { childEntry } from '../../model/installation.js';
import type { Issue } from '../../model/document.js';
import type { ImportTarget, Workbench } from '../../model/workbench.js';
import { attribute } from '../attribution/attribute.js';
import type { ImportContext, Importer, ImportOutcome } from '../importer.js';
import { ensureSameTime } from '../same-time.js';
import { dropTraceTables } from '../trace-tables.js';
import type { TraceClock } from './chunk-parser.js';
import { saveCollectives } from './collectives.js';
import { damagedTrace, readFailure } from './damage.js';
import { kinetoFacts, countOddDevices, hasRank, rankOf, realtimeOrigin } from './facts.js';
import { createTraceFill, type FilledTables } from './fill.js';
import { readHead } from './head.js';
import { countKernelEvents, lossIssues, type Losses, noLosses } from './issues.js';
import { openLanes } from './lanes.js';
import { attributeAllocations, saveAllocatorTotals } from './memory.js';
import { NotSplittable, type Reading, readOnOneThread, readWithWorkers } from './read-events.js';
import { openSource } from './source.js';

/** Below this, starting threads costs more than they save. */
const parallelFromBytes = 16 * 2 ** 20;

/** A third and a fourth thread save only a tenth of the time and take 100 MB each for blocks in flight and their heap. */
const maxParsers = 2;

/** DuckDB's limit while a trace is read and attributed; the rest of 500 MB is for Node and the workers. */
export const databaseMemoryBytes = 128 * 2 ** 20;

export interface KinetoOptions {
  /** Parser threads; 1 is this thread. Default: number of cores, at most 2, for files that are large enough. */
  threads?: number;
  /** The built kineto-worker.js; default: the installed one. */
  workerEntry?: string;
}

/**
 * Chrome traces of torch.profiler (Kineto), `.json` and `.json.gz`, CUDA and ROCm, categories old and new.
 * {"schemaVersion": 1, …, "traceEvents": [{"ph": "X", "cat": "kernel", "name": "…", "ts": 4379921106073.345, …}, …]}
 */
export const kinetoImporter = {
  name: 'kineto',
  sniff: isKineto,
  facts: async (path) => kinetoFacts(await readHead(path)),
  load: (path, target, context) => loadKineto(path, target, context),
} satisfies Importer;

function isKineto(firstBytes: string): boolean {
  // ONNX Runtime's profile is a bare array too; its categories differ.
  const isBareArray = /^\s*\[\s*\{/.test(firstBytes);
  const category =
    /"cat"\s*:\s*"(cpu_op|kernel|cuda_runtime|user_annotation|python_function|Operator|Kernel)"/;
  if (isBareArray) return /"ph"\s*:/.test(firstBytes) && category.test(firstBytes);
  if (!/^(\u00ef\u00bb\u00bf)?\s*\{/.test(firstBytes)) return false;
  return (
    /"(deviceProperties|baseTimeNanoseconds|cupti_version|distributedInfo|record_shapes)"\s*:/.test(
      firstBytes,
    ) ||
    /"schemaVersion"\s*:\s*1\b/.test(firstBytes) ||
    (/"traceEvents"\s*:\s*\[/.test(firstBytes) && category.test(firstBytes))
  );
}

/** @throws E_TRACE_FILE, E_INTERRUPTED */
async function loadKineto(
  path: string,
  { workbench }: Pick<ImportTarget, 'workbench'>,
  context: ImportContext,
  options: KinetoOptions = {},
): Promise<ImportOutcome> {
  await workbench.limit({ memory_bytes: databaseMemoryBytes, threads: 2, return_pages: true });
  const issues: Issue[] = [];
  try {
    issues.push(...(await fillTraceTables(path, workbench, context, options)));
    const attributed = await attribute(workbench, {
      ...context,
      progress: (share) => context.progress?.(0.6 + 0.4 * share),
    });
    issues.push(...attributed.issues);
    await saveCollectives(workbench, context);
  } finally {
    await dropTraceTables(workbench);
    await workbench.run('DROP TABLE IF EXISTS kineto_memory');
    await workbench.run('DROP TABLE IF EXISTS kineto_collectives');
  }
  return {
    // ts has three decimals of a µs.
    clock: { name: 'torch.profiler, ns', resolution_ns: 1, error_bound_ns: null },
    issues,
  };
}

/** Everything before attribution; the tables are then ready for it. */
export async function fillTraceTables(
  path: string,
  workbench: Workbench,
  context: ImportContext,
  options: KinetoOptions = {},
): Promise<Issue[]> {
  const head = await readHead(path);
  const rank = rankOf(head.facts);
  const clock = { originUs: head.originUs, offsetNs: offsetNs(path, head.facts, head.originUs, context) };
  const { filled, losses, facts } = await readEvents(path, workbench, { ...context, rank }, clock, options);
  const { rows } = filled;
  if (rows.kernels + rows.copies + rows.api + rows.ranges + rows.ops === 0) {
    throw damagedTrace(
      path,
      'None of its events comes from the PyTorch profiler (cpu_op, kernel, cuda_runtime, …).',
    );
  }
  const kernels = countKernelEvents(losses);
  if (kernels > 0 && rows.kernels === 0)
    throw damagedTrace(path, `None of its ${kernels} kernels has a valid time and duration.`);
  for (const [key, value] of head.facts) if (!facts.has(key)) facts.set(key, value);
  await shiftTimes(workbench, offsetNs(path, facts, head.originUs, context) - clock.offsetNs);
  const finalRank = rankOf(facts);
  if (finalRank !== rank) {
    for (const table of timedTables) await workbench.run(`UPDATE ${table.name} SET rank = ${finalRank}`);
  }
  if (!hasRank(facts)) await numberDevices(workbench);
  if (rows.memory > 0) {
    const { execution_id, host, capture_id } = context;
    await saveAllocatorTotals(workbench, capture_id, { execution_id, host, rank: finalRank });
    losses.allocationsOutside = await attributeAllocations(workbench);
  }
  losses.oddDevices = countOddDevices(facts);
  return lossIssues(losses, filled);
}

/** A process without a process group that communicates through NCCL on several devices has a rank for each of these. */
async function numberDevices(workbench: Workbench): Promise<void> {
  const devices = await workbench.query<{ device: number }>(
    `SELECT DISTINCT device FROM trace_kernels JOIN trace_names ON code = name WHERE starts_with(text, 'nccl') AND NOT isnan(device) ORDER BY device`,
  );
  if (devices.length < 2) return;
  const ranks = devices.map(({ device }, rank) => `WHEN ${device} THEN ${rank}`).join(' ');
  for (const table of ['trace_kernels', 'trace_copies'])
    await workbench.run(`UPDATE ${table} SET rank = CASE device ${ranks} ELSE rank END`);
}

async function readEvents(
  path: string,
  workbench: Workbench,
  context: ImportContext & { rank: number },
  clock: TraceClock,
  options: KinetoOptions,
): Promise<{ filled: FilledTables; losses: Losses; facts: Map<string, unknown> }> {
  const entry = options.workerEntry ?? childEntry('kineto-worker');
  let threads = options.threads ?? Math.min(maxParsers, availableParallelism());
  for (;;) {
    const source = await openSource(path);
    if (!existsSync(entry) || (options.threads === undefined && source.size < parallelFromBytes)) threads = 1;
    const losses = noLosses();
    const facts = new Map<string, unknown>();
    const fill = await createTraceFill(workbench, context);
    const reading: Reading = {
      path,
      source,
      facts,
      onBatch(batch, lane) {
        losses.add(batch);
        fill.add(batch, lane);
      },
      onSecondList: () => losses.eventLists++,
      onTrailing: (bytes) => (losses.trailingBytes += bytes),
      onProgress: (share) => context.progress?.(0.6 * share),
      signal: context.signal,
    };
    try {
      if (threads > 1) await readWithLanes(reading, entry, threads, clock);
      else await readOnOneThread(reading, clock);
      return { filled: await fill.finish(), losses, facts };
    } catch (error) {
      fill.abandon();
      if (!(error instanceof NotSplittable)) throw readFailure(path, error);
      await dropTraceTables(workbench);
      threads = 1;
      // A single thread can read every layout.
      options = { ...options, threads };
    } finally {
      source.destroy();
    }
  }
}

async function readWithLanes(
  reading: Reading,
  entry: string,
  threads: number,
  clock: TraceClock,
): Promise<void> {
  const lanes = openLanes(entry, threads, clock);
  try {
    await readWithWorkers(reading, lanes);
  } finally {
    await lanes.close();
  }
}

const timedTables = [
  { name: 'trace_kernels', columns: ['start_ns'] },
  { name: 'trace_copies', columns: ['start_ns'] },
  { name: 'trace_api', columns: ['start_ns'] },
  { name: 'trace_ranges', columns: ['start_ns', 'end_ns'] },
  { name: 'trace_ops', columns: ['start_ns'] },
];

/**
 * Session time of the file's first events, from which its times are counted, ns; 0 if one of the two clocks is unknown.
 * @throws E_USAGE if they are more than 100 days apart
 */
function offsetNs(
  path: string,
  facts: ReadonlyMap<string, unknown>,
  originUs: number,
  { zero }: ImportContext,
): number {
  const origin = realtimeOrigin(facts, originUs);
  ensureSameTime(path, origin, zero.realtime_ns);
  return origin === null || zero.realtime_ns === null ? 0 : Number(origin - zero.realtime_ns);
}

/** Needed only if baseTimeNanoseconds follows the events and readHead did not find it, as in a compressed file. */
async function shiftTimes(workbench: Workbench, ns: number): Promise<void> {
  if (ns === 0) return;
  for (const { name, columns } of [
    ...timedTables,
    { name: 'kineto_memory', columns: ['t_ns'] },
    { name: 'kineto_collectives', columns: ['start_ns'] },
  ]) {
    const shifted = columns.map((column) => `${column} = ${column} + ${ns}`);
    await workbench.run(`UPDATE ${name} SET ${shifted.join(', ')}`);
  }
}
