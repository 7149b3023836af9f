import { stepKinds } from '../../model/record.js';
import { figure, missing, type Figure } from '../../model/figure.js';
import type { LaunchKernel, Launches, PhaseKind, TracePhase } from '../../model/documents/trace.js';
import type { Workload } from '../../model/manifest.js';
import { isEncoderDecoder } from '../../llm/read-architecture.js';
import { arithmeticConfig, workloadArchitecture } from '../model-work.js';
import type { LaunchedRow, Spreads } from './kernel-spreads.js';
import type { TraceScope } from './scope.js';
import { spreadOf } from './spread.js';
import { byPhaseSql } from './step-places.js';

const maxKernels = 30;

/** SQL of (kind, graph_launches): launches of CUDA graphs by kind of step; those of sampling also count in their step. */
export const graphLaunchesSql = `SELECT kind, count(*) AS graph_launches FROM (
    SELECT DISTINCT phase AS kind, pid, correlation
    FROM ${byPhaseSql('phase_kernels')} WHERE graph_node IS NOT NULL OR class = 'graph') GROUP BY kind`;

/**
 * How work reaches the device: launches per step and layer, duration of the launching calls, and queue time of kernels
 * (definitions of nsys's cuda_kern_exec_sum; all nodes of a CUDA graph share its launch).
 * @param spreads from startSpreads
 */
export async function readLaunches(
  scope: TraceScope,
  phases: readonly TracePhase[],
  workload: Workload | null,
  { launched, phases: spreads }: Pick<Spreads, 'launched' | 'phases'>,
): Promise<Launches> {
  const { database } = scope;
  await scope.need('window_split', 'kernel_cells');
  const layers = decoderLayers(workload);
  const hasEncoder = workload?.model ? isEncoderDecoder(arithmeticConfig(workload.model).config) : false;
  const [graph] = await database.query<{ n: number }>(
    "SELECT count(*) AS n FROM kernel_cells WHERE in_graph OR class = 'graph'",
  );
  const hasGraphs = (graph?.n ?? 0) > 0;
  const graphs = hasGraphs
    ? await database.query<{ kind: PhaseKind; graph_launches: number }>(graphLaunchesSql)
    : [];
  const ranges = await database.query<{ kind: PhaseKind; low: number; high: number }>(
    `SELECT kind, min(launches) AS low, max(launches) AS high FROM window_split GROUP BY kind`,
  );
  // Kinds in which an instance is one pass through the layers. Loading makes no pass, warm-up several.
  const onePass = new Set<PhaseKind>(stepKinds);
  const perLayer = (kind: PhaseKind, value: number, what: string): Figure =>
    !onePass.has(kind)
      ? missing('not_one_pass', `an instance of ${kind} is not one pass through the layers`)
      : layers.value === null
        ? layers
        : hasEncoder && kind !== 'decode'
          ? missing('not_one_pass', `an instance of ${kind} is not one pass through the decoder's layers`)
          : figure(value / layers.value, 'per layer', `${what} / decoder layers`);
  return {
    layers,
    phases: phases.map((phase) => {
      // If a phase has both kinds, plain launches are shown: a step waits for the queue of each of them.
      const phaseSpreads = spreads.filter((row) => row.phase === phase.kind);
      const spread = phaseSpreads.find((row) => spreadOf(row, 'api_') !== null) ?? {};
      const range = ranges.find(({ kind }) => kind === phase.kind);
      const graphLaunches = graphs.find(({ kind }) => kind === phase.kind)?.graph_launches ?? 0;
      return {
        kind: phase.kind,
        instances: phase.instances,
        launches: phase.launches,
        launches_min: range?.low ?? phase.launches,
        launches_max: range?.high ?? phase.launches,
        kernels: phase.kernels,
        graph_launches: graphLaunches / phase.instances,
        kernels_per_layer: perLayer(phase.kind, phase.kernels, 'kernels of a mean instance'),
        launches_per_layer: perLayer(phase.kind, phase.launches, 'launches of a mean instance'),
        api: spreadOf(spread, 'api_'),
        queue: spreadOf(spread, 'queue_'),
      };
    }),
    kernels: await readLaunchedKernels(database, launched),
  };
}

function decoderLayers(workload: Workload | null): Figure {
  if (!workload) return missing('no_model', 'the session does not record the model');
  const architecture = workloadArchitecture(workload);
  if ('reason' in architecture) return architecture;
  return figure(
    architecture.layers.filter(({ isEncoder }) => !isEncoder).length,
    'layers',
    "the model's config.json",
  );
}

/** One launch identifies the call for all launches of its kind. */
async function readLaunchedKernels(
  database: TraceScope['database'],
  launched: readonly LaunchedRow[],
): Promise<LaunchKernel[]> {
  const rows = launched.slice(0, maxKernels);
  // A separate query: a list of literal ids lets the reader skip parts of the file.
  const ids = rows.flatMap(({ correlation }) => (correlation === null ? [] : [correlation]));
  const calls =
    ids.length === 0
      ? []
      : await database.query<{ pid: number | null; correlation: number; name: string | null }>(
          `SELECT pid, correlation, arg_min(name, dur_ns) AS name FROM rank_api
           WHERE correlation IN (${ids.join(', ')}) GROUP BY pid, correlation`,
        );
  return rows.map((row) => ({
    kernel: row.kernel!,
    short_name: row.short_name ?? row.kernel!,
    api_name:
      calls.find(({ pid, correlation }) => pid === row.pid && correlation === row.correlation)?.name ?? null,
    count: spreadOf(row, 'kernel_')!.count,
    total: spreadOf(row, 'total_')!,
    api: spreadOf(row, 'api_')!,
    queue: spreadOf(row, 'queue_'),
    kernel_spread: spreadOf(row, 'kernel_')!,
  }));
}
