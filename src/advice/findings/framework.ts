import type { ManifestData } from '../../model/manifest.js';
import type { FindingContext, FoundDraft } from './rule.js';

/** The engine with the switches that a change names; null for a user's own program, with or without PyTorch. */
export type Framework = 'vllm' | 'sglang' | 'tensorrt_llm';

interface EngineMarks {
  framework: Framework;
  program: RegExp;
  operators: RegExp;
  ranges: RegExp;
  kernels: RegExp;
}

/** Tested in this order: SGLang also runs vLLM kernels, and both run kernels in TensorRT-LLM's namespace (FlashInfer). */
const marks: readonly EngineMarks[] = [
  {
    framework: 'sglang',
    program: /\bsglang\b/i,
    operators: /^(?:sgl_kernel|sglang)::/,
    ranges: /^step\[/,
    kernels: /\bsgl_|sglang|sgl_hip|sgl_kernel/i,
  },
  {
    framework: 'vllm',
    program: /\bvllm\b/i,
    operators: /^(?:vllm|_vllm_\w+|_C_cache_ops|_moe_C)::/,
    ranges: /^execute_(?:\d+_)?(?:new_)?context_/,
    kernels: /vllm::/i,
  },
  {
    framework: 'tensorrt_llm',
    program: /trtllm|tensorrt[-_.]?llm/i,
    operators: /^(?:trtllm|tensorrt_llm)::/,
    ranges: /^(?:TensorRT-LLM:)?\[Executor\]/,
    kernels: /tensorrt_llm/i,
  },
];

/** Kernels that only run in training: gradients and the optimizer step. */
const trainingKernels = /dgrad|wgrad|[_:](bwd|backward)(_|\b)|flash_bwd|adam|sgd_/i;
const trainingRanges = /\b(backward|optimizer)\b/i;

/** Kernels of PyTorch itself and of its compiler. */
const pytorchKernels = /\bat::|at_cuda_detail|\bc10::|^triton_/;

interface Program {
  framework: Framework | null;
  /** Whether anything shows PyTorch: its version, a Python command, operators or kernels. */
  pytorch: boolean;
  training: boolean;
}

const programs = new WeakMap<FindingContext, Promise<Program>>();

/**
 * The program's framework, whether it uses PyTorch, and whether it trains: from the command line and engine, else operators and
 * ranges, else kernel namespaces. Only the text of a change depends on it, never whether a rule fires.
 */
export function programOf(context: FindingContext): Promise<Program> {
  const program = programs.get(context) ?? readProgram(context);
  programs.set(context, program);
  return program;
}

async function readProgram({ manifest, scope }: FindingContext): Promise<Program> {
  const names = scope
    ? await scope.database.query<{ name: string }>('SELECT DISTINCT name FROM finding_kernels')
    : [];
  const ranges = scope
    ? await scope.database.query<{ name: string }>(
        'SELECT DISTINCT raw_name AS name FROM phase_stages WHERE raw_name IS NOT NULL LIMIT 1000',
      )
    : [];
  const operators = scope
    ? await scope.database.query<{ name: string }>(
        "SELECT DISTINCT name FROM rank_ops WHERE contains(name, '::')",
      )
    : [];
  const matches = (rows: readonly { name: string | null }[], pattern: RegExp) =>
    rows.some(({ name }) => name !== null && pattern.test(name));
  const recorded = recordedProgram(manifest);
  const engine =
    marks.find(({ program }) => program.test(recorded)) ??
    marks.find((mark) => matches(operators, mark.operators) || matches(ranges, mark.ranges)) ??
    marks.find(({ kernels }) => matches(names, kernels));
  return {
    framework: engine?.framework ?? null,
    pytorch:
      manifest.software['torch'] !== undefined ||
      engine !== undefined ||
      operators.length > 0 ||
      /\bpython|\b(?:torchrun|transformers)\b/.test(recorded) ||
      matches(names, pytorchKernels),
    training: matches(names, trainingKernels) || matches(ranges, trainingRanges),
  };
}

/** Whether an engine replays CUDA graphs; unknown where neither the capture nor the command line shows it. */
export type GraphState = 'on' | 'off' | 'unknown';

const withoutGraphs = /--enforce[-_]eager|enforce_eager['"]?\s*[=:]\s*true|--disable-cuda-graph\b/i;

/**
 * Graph launches in the capture show that graphs are on, and the engine's flag that they are off.
 * @param args engine arguments that the command line does not have
 */
export async function graphState(
  { scope, manifest }: FindingContext,
  args: Readonly<Record<string, string>> = {},
): Promise<GraphState> {
  const argumentWords = Object.entries(args).map(([name, value]) => `${name}=${value}`);
  if (withoutGraphs.test([recordedProgram(manifest), ...argumentWords].join(' '))) return 'off';
  const replayed =
    scope === null
      ? []
      : await scope.database.query(
          "SELECT 1 FROM rank_kernels WHERE graph_node IS NOT NULL OR class = 'graph' LIMIT 1",
        );
  return replayed.length > 0 ? 'on' : 'unknown';
}

/** The workload's command and engine; empty for an imported file. */
function recordedProgram({ workload, executions }: ManifestData): string {
  const commands = executions.flatMap(({ command }) => command);
  return [workload?.engine.name ?? '', ...commands].join(' ').trim();
}

/** A change in the terms of PyTorch, or in those of the CUDA runtime for a program that nothing shows to use PyTorch. */
export async function changeFor(
  context: FindingContext,
  inPyTorch: FoundDraft['change'],
  inCuda: Pick<FoundDraft['change'], 'text' | 'example'>,
): Promise<FoundDraft['change']> {
  return (await programOf(context)).pytorch ? inPyTorch : { kind: inPyTorch.kind, ...inCuda };
}
