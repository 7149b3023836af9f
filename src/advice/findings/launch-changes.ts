import { programOf, type Framework } from './framework.js';
import type { FindingContext, FoundDraft } from './rule.js';
import type { StageFacts } from './stage-facts.js';

type Change = FoundDraft['change'];

/** How engines launch a whole step at once: their own switches, of decode steps, mixed ones (as many tokens as prompts bring) and prefills. */
const engines: Record<Framework, { decode: Change; mixed: Change; prefill: Change }> = {
  vllm: {
    decode: {
      kind: 'flag',
      text: 'Let vLLM replay CUDA graphs: leave --enforce-eager out, and let the captured sizes reach the batch.',
      example: `--compilation-config '{"cudagraph_mode": "FULL_AND_PIECEWISE", "cudagraph_capture_sizes": [1, 2, 4, 8, 16]}'`,
    },
    mixed: {
      kind: 'flag',
      text: 'Let vLLM replay CUDA graphs for mixed steps too: leave --enforce-eager out, and let the captured sizes reach the tokens of a step, prompts included.',
      example: `--compilation-config '{"cudagraph_mode": "FULL_AND_PIECEWISE", "max_cudagraph_capture_size": 1024}'`,
    },
    prefill: {
      kind: 'flag',
      text: 'Let vLLM replay CUDA graphs for prompts too: leave --enforce-eager out, and let the captured sizes reach the tokens of a prefill; or compute more tokens a step.',
      example: `--compilation-config '{"cudagraph_mode": "FULL_AND_PIECEWISE", "max_cudagraph_capture_size": 1024}'`,
    },
  },
  sglang: {
    decode: {
      kind: 'flag',
      text: 'Let SGLang replay CUDA graphs: leave --disable-cuda-graph out, and let the captured sizes reach the batch.',
      example: '--cuda-graph-max-bs <largest batch>',
    },
    mixed: {
      kind: 'flag',
      text: 'Let SGLang replay CUDA graphs for steps with prompts too (piecewise; the default of newer versions): the captured sizes must reach the tokens of a step.',
      example: '--enable-piecewise-cuda-graph',
    },
    prefill: {
      kind: 'flag',
      text: 'Let SGLang replay CUDA graphs for prompts too (piecewise; the default of newer versions), or compute more tokens a step.',
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
      text: 'Let TensorRT-LLM replay CUDA graphs for steps with prompts too (piecewise): the captured sizes must reach the tokens of a step.',
      example: 'torch_compile_config: {enable_piecewise_cuda_graph: true}',
    },
    prefill: {
      kind: 'config',
      text: 'Let TensorRT-LLM replay CUDA graphs for prompts too (piecewise), or compute more tokens a step.',
      example: 'torch_compile_config: {enable_piecewise_cuda_graph: true}',
    },
  },
};

/** The change for a stage whose launches hold it up, in the words of what the program is made with. */
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
      text: 'Put the whole step into one CUDA graph: what is launched outside of it is what the device waits for.',
      example: 'with torch.cuda.graph(graph): …  # sampling and the copies of its inputs too',
    };
  return {
    kind: 'code',
    text: 'Launch the whole step at once: capture it into a CUDA graph (a static KV cache is needed), or let torch.compile do so (mode="reduce-overhead"); then the host launches once a step.',
    more: 'A larger batch hides the launches as well.',
    example: 'model.forward = torch.compile(model.forward, mode="reduce-overhead", fullgraph=True)',
  };
}
