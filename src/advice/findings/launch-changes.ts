import type { PhaseKind } from '../../model/documents/trace.js';
import { changeFor, type Framework, type GraphState, graphState, programOf } from './framework.js';
import { gatheredWeights } from './gathered-weights.js';
import type { FindingContext, FoundDraft } from './rule.js';
import type { StageFacts } from './stage-facts.js';

type Change = FoundDraft['change'];

/** Options that enable CUDA graphs in an engine, also for stages that it launches eagerly. */
interface EngineSwitches {
  name: string;
  /** The option that turns graphs off. */
  off: string;
  kind: Change['kind'];
  /** How it schedules the next step while the device runs this one. */
  overlap: { option: string; unknown?: string; example: string | null };
  decode: { covers: string; example: string };
  mixed: { covers: string; example: string };
  prefill: { covers: string; example: string };
}

const engines: Record<Framework, EngineSwitches> = {
  vllm: {
    name: 'vLLM',
    off: '--enforce-eager',
    kind: 'flag',
    overlap: {
      option: '--async-scheduling',
      unknown: ' (if it is not on, as in newer versions)',
      example: '--async-scheduling',
    },
    decode: {
      covers: 'make the captured sizes cover the batch',
      example: `--compilation-config '{"cudagraph_mode": "FULL_AND_PIECEWISE", "cudagraph_capture_sizes": [1, 2, 4, 8, 16]}'`,
    },
    mixed: {
      covers: 'make the captured sizes cover the tokens per step, prompts included',
      example: `--compilation-config '{"cudagraph_mode": "FULL_AND_PIECEWISE", "max_cudagraph_capture_size": 1024}'`,
    },
    prefill: {
      covers: 'make the captured sizes cover the tokens of a prefill; or compute more tokens per step',
      example: `--compilation-config '{"cudagraph_mode": "FULL_AND_PIECEWISE", "max_cudagraph_capture_size": 1024}'`,
    },
  },
  sglang: {
    name: 'SGLang',
    off: '--disable-cuda-graph',
    kind: 'flag',
    overlap: { option: 'its overlap scheduler (on without --disable-overlap-schedule)', example: null },
    decode: {
      covers: 'make the captured sizes cover the batch',
      example: '--cuda-graph-max-bs <largest batch>',
    },
    mixed: {
      covers:
        'use piecewise graphs (the default of newer versions), with captured sizes that cover the tokens per step',
      example: '--enable-piecewise-cuda-graph',
    },
    prefill: {
      covers: 'use piecewise graphs (the default of newer versions); or compute more tokens per step',
      example: '--enable-piecewise-cuda-graph',
    },
  },
  tensorrt_llm: {
    name: 'TensorRT-LLM',
    off: 'cuda_graph_config: null',
    kind: 'config',
    overlap: {
      option: 'its overlap scheduler (on without disable_overlap_scheduler: true)',
      example: null,
    },
    decode: {
      covers: 'pad batches to the captured sizes',
      example: 'cuda_graph_config: {enable_padding: true, max_batch_size: <largest batch>}',
    },
    mixed: {
      covers: 'use piecewise graphs, with captured sizes that cover the tokens per step',
      example: 'torch_compile_config: {enable_piecewise_cuda_graph: true}',
    },
    prefill: {
      covers: 'use piecewise graphs; or compute more tokens per step',
      example: 'torch_compile_config: {enable_piecewise_cuda_graph: true}',
    },
  },
};

/** Does not suggest options that are already in use. */
function engineChange(framework: Framework, kind: PhaseKind, state: GraphState): Change {
  const { name, off, kind: changeKind, ...switches } = engines[framework];
  const { covers, example } = switches[kind === 'prefill' || kind === 'mixed' ? kind : 'decode'];
  const text = {
    on: `${name} replays CUDA graphs, but launches these kernels outside of them: ${covers}.`,
    off: `Let ${name} replay CUDA graphs: remove ${off}, and ${covers}.`,
    unknown: `Let ${name} replay CUDA graphs: run it without ${off}, and ${covers}.`,
  }[state];
  return { kind: changeKind, text, example };
}

/** Whether the engine schedules the next step while the device runs this one; null: not recorded. */
const schedulesAhead = ({ manifest }: FindingContext): boolean | null =>
  manifest.workload?.model?.facts?.async_scheduling ?? null;

/** Whether only more sequences per step can make an engine's time between steps cheaper. */
export const isSharedOnly = async (context: FindingContext): Promise<boolean> =>
  schedulesAhead(context) === true && (await programOf(context)).framework !== null;

/** The change for time that the host of an engine needs between two steps; null for a user's own program. */
export async function engineHostChange(context: FindingContext): Promise<Change | null> {
  const { framework } = await programOf(context);
  if (!framework) return null;
  const { name, overlap } = engines[framework];
  const scheduling = `Between two steps ${name} reads tokens, schedules and prepares inputs. More sequences per step share that time`;
  const on = schedulesAhead(context);
  if (on === true)
    return {
      kind: 'config',
      text: `${scheduling}; asynchronous scheduling is on already. Work of the program itself between calls of ${name} can move to another process.`,
      example: null,
    };
  return {
    kind: 'config',
    text: `${scheduling}; ${overlap.option}${on === null ? (overlap.unknown ?? '') : ''} does it while the device runs a step.`,
    example: overlap.example,
  };
}

/** Share of a stage's GEMMs in graphs from which the model is replayed whole: the GEMM that computes logits is often outside. */
const minGraphShare = 0.9;

/** Share of a stage's GEMMs that graphs launched; 0 without a GPU timeline. */
async function gemmsInGraphs({ scope }: FindingContext, kind: PhaseKind): Promise<number> {
  if (!scope) return 0;
  const [row] = await scope.database.query<{ share: number | null }>(
    `SELECT sum(n) FILTER (in_graph) / sum(n) AS share FROM finding_kernels WHERE kind = '${kind}' AND class = 'gemm'`,
  );
  return row?.share ?? 0;
}

const betweenReplaysChange = (engine: string): Change => ({
  kind: 'config',
  text: `${engine} replays the model as a CUDA graph already; between two replays it schedules, prepares inputs and samples. More sequences per step share that time.`,
  details:
    'Fewer sampling options and no per-token output leave less of it. The gain is the limit: replays that follow each other without a pause.',
  example: null,
});

const trainingChange: Change = {
  kind: 'code',
  text: 'Launch fewer kernels: compile the model, use a fused optimizer, and capture forward and backward pass into CUDA graphs where shapes are fixed.',
  details: 'A larger micro-batch hides the launches as well.',
  example:
    'model = torch.compile(model, mode="reduce-overhead"); optimizer = torch.optim.AdamW(parameters, fused=True)',
};

/** Hooks of FSDP gather and free weights around every layer, which no graph of a whole step can hold. */
const unshardFirst: Change = {
  kind: 'code',
  text: 'Load the model without FSDP first (the weights whole on each GPU, or tensor parallelism): its hooks around each layer launch the gathers from Python and keep CUDA graphs from holding more than a layer. Then capture the whole step.',
  example: 'model.forward = torch.compile(model.forward, mode="reduce-overhead", fullgraph=True)',
};

/**
 * The change for a launch-bound stage, in terms of the program's framework.
 * @param args engine arguments of a benchmark
 */
export async function launchBoundChange(
  context: FindingContext,
  { kind, graph_launches }: Pick<StageFacts, 'kind' | 'graph_launches'>,
  args: Readonly<Record<string, string>> = {},
): Promise<Change> {
  const { framework } = await programOf(context);
  if (framework && (await gemmsInGraphs(context, kind)) >= minGraphShare)
    return betweenReplaysChange(engines[framework].name);
  if (framework) return engineChange(framework, kind, await graphState(context, args));
  if (kind === 'training') return trainingChange;
  if (await gatheredWeights(context, kind)) return unshardFirst;
  return changeFor(context, pytorchChange(kind, graph_launches), {
    text: 'Launch the whole step at once: capture its launches into a CUDA graph and replay it, or fuse small kernels.',
    example:
      'cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal); …; cudaStreamEndCapture(stream, &graph)',
  });
}

function pytorchChange(kind: StageFacts['kind'], graphLaunches: number): Change {
  if (kind === 'prefill')
    return {
      kind: 'code',
      text: 'Pad prompts to a few lengths and capture a CUDA graph for each; then the host launches once.',
      details:
        'A plain torch.compile is not enough: it fuses kernels, and the host still launches what is left. More tokens per prefill (prompts together, longer chunks) hide the launches as well.',
      example:
        'model.forward = torch.compile(model.forward, mode="reduce-overhead", dynamic=False)  # prompts padded to 128, 256, 512, …',
    };
  if (graphLaunches >= 0.5)
    return {
      kind: 'code',
      text: 'Capture the whole step in one CUDA graph: the device waits for the launches outside of it.',
      example: 'with torch.cuda.graph(graph): …  # sampling and the copies of its inputs too',
    };
  return {
    kind: 'code',
    text: `Launch the whole step at once: capture it into a CUDA graph${kind === 'decode' || kind === 'mixed' ? ' (a static KV cache is needed)' : ''}, or let torch.compile do so (mode="reduce-overhead"); then the host launches once per step.`,
    details: 'A larger batch hides the launches as well.',
    example: 'model.forward = torch.compile(model.forward, mode="reduce-overhead", fullgraph=True)',
  };
}
