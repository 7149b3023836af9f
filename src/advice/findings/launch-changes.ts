import { programOf, type Framework } from './framework.js';
import type { FindingContext, FoundDraft } from './rule.js';
import type { StageFacts } from './stage-facts.js';

type Change = FoundDraft['change'];

/** Engine switches that launch a whole step at once, for decode steps, mixed steps and prefills. */
const engines: Record<Framework, { decode: Change; mixed: Change; prefill: Change }> = {
  vllm: {
    decode: {
      kind: 'flag',
      text: 'Let vLLM replay CUDA graphs: remove --enforce-eager, and make the captured sizes cover the batch.',
      example: `--compilation-config '{"cudagraph_mode": "FULL_AND_PIECEWISE", "cudagraph_capture_sizes": [1, 2, 4, 8, 16]}'`,
    },
    mixed: {
      kind: 'flag',
      text: 'Let vLLM replay CUDA graphs for mixed steps too: remove --enforce-eager, and make the captured sizes cover the tokens per step, prompts included.',
      example: `--compilation-config '{"cudagraph_mode": "FULL_AND_PIECEWISE", "max_cudagraph_capture_size": 1024}'`,
    },
    prefill: {
      kind: 'flag',
      text: 'Let vLLM replay CUDA graphs for prompts too: remove --enforce-eager, and make the captured sizes cover the tokens of a prefill; or compute more tokens per step.',
      example: `--compilation-config '{"cudagraph_mode": "FULL_AND_PIECEWISE", "max_cudagraph_capture_size": 1024}'`,
    },
  },
  sglang: {
    decode: {
      kind: 'flag',
      text: 'Let SGLang replay CUDA graphs: remove --disable-cuda-graph, and make the captured sizes cover the batch.',
      example: '--cuda-graph-max-bs <largest batch>',
    },
    mixed: {
      kind: 'flag',
      text: 'Let SGLang replay CUDA graphs for steps with prompts too (piecewise; the default of newer versions): the captured sizes must cover the tokens per step.',
      example: '--enable-piecewise-cuda-graph',
    },
    prefill: {
      kind: 'flag',
      text: 'Let SGLang replay CUDA graphs for prompts too (piecewise; the default of newer versions), or compute more tokens per step.',
      example: '--enable-piecewise-cuda-graph',
    },
  },
  tensorrt_llm: {
    decode: {
      kind: 'config',
      text: 'Let TensorRT-LLM replay CUDA graphs, and pad batches to the captured sizes.',
      example: 'cuda_graph_config: {enable_padding: true, max_batch_size: <largest batch>}',
    },
    mixed: {
      kind: 'config',
      text: 'Let TensorRT-LLM replay CUDA graphs for steps with prompts too (piecewise): the captured sizes must cover the tokens per step.',
      example: 'torch_compile_config: {enable_piecewise_cuda_graph: true}',
    },
    prefill: {
      kind: 'config',
      text: 'Let TensorRT-LLM replay CUDA graphs for prompts too (piecewise), or compute more tokens per step.',
      example: 'torch_compile_config: {enable_piecewise_cuda_graph: true}',
    },
  },
};

/** The change for a launch-bound stage, in terms of the program's framework. */
export async function launchTogether(
  context: FindingContext,
  { kind, graph_launches }: Pick<StageFacts, 'kind' | 'graph_launches'>,
): Promise<Change> {
  const { framework } = await programOf(context);
  if (framework) return engines[framework][kind === 'prefill' || kind === 'mixed' ? kind : 'decode'];
  if (kind === 'prefill')
    return {
      kind: 'code',
      text: 'Pad prompts to a few lengths and capture a CUDA graph for each; then the host launches once.',
      more: 'A plain torch.compile is not enough: it fuses kernels, and the host still launches what is left. More tokens per prefill (prompts together, longer chunks) hide the launches as well.',
      example:
        'model.forward = torch.compile(model.forward, mode="reduce-overhead", dynamic=False)  # prompts padded to 128, 256, 512, …',
    };
  if (graph_launches >= 0.5)
    return {
      kind: 'code',
      text: 'Capture the whole step in one CUDA graph: the device waits for the launches outside of it.',
      example: 'with torch.cuda.graph(graph): …  # sampling and the copies of its inputs too',
    };
  return {
    kind: 'code',
    text: 'Launch the whole step at once: capture it into a CUDA graph (a static KV cache is needed), or let torch.compile do so (mode="reduce-overhead"); then the host launches once per step.',
    more: 'A larger batch hides the launches as well.',
    example: 'model.forward = torch.compile(model.forward, mode="reduce-overhead", fullgraph=True)',
  };
}
