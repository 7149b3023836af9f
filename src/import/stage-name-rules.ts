import { libraryRange } from '../model/library-ranges.js';
import type { StageKind } from '../model/record.js';

/** One line of the table that turns names of ranges into stages; users add theirs in inferscope.yaml (`stages:`). */
export interface StageNameRule {
  /** Matched against the whole name, case-insensitively; named groups fill the fields of the same name. */
  pattern: RegExp;
  kind: StageKind;
  /** The source of such marks, and an example name. */
  source: string;
  sample: string;
}

/**
 * Marks of engines and users for their stages, first match wins. Named groups: iteration, step_index, batch_size,
 * new_tokens, context_tokens_sum; context_requests and generation_requests (vLLM, TensorRT-LLM), from which kind and
 * batch follow.
 */
export const stageNameRules: readonly StageNameRule[] = [
  {
    pattern:
      /inferscope:(?<kind>prefill|decode|mixed|sampling|load|warmup|other)(?::(?<iteration>-?\d+))?(?::(?<step_index>\d+))?(?::(?<hook>hook|first|graph))?(?::b(?<batch_size>\d+))?(?::t(?<new_tokens>\d+))?(?::c(?<context_tokens_sum>\d+))?/,
    kind: 'other',
    source: 'inferscope',
    sample: 'inferscope:decode:0:17',
  },
  {
    pattern: new RegExp(`${libraryRange}.*`),
    kind: 'other',
    source: 'NVTX domains of libraries',
    sample: 'NCCL:ncclAllReduce',
  },
  {
    // vLLM v1, GPUModelRunner: requests in prefill (their tokens_context tokens), then requests in generation.
    pattern:
      /execute_(?:\d+_)?(?:new_)?context_(?<context_requests>\d+)\((?<context_counts>[\dskq_. ]*)\)_generation_(?<generation_requests>\d+)\((?<generation_counts>[\dskq_. ]*)\)/,
    kind: 'other',
    source: 'vLLM, TraceLens',
    sample: 'execute_4_context_0(sq0sk0sqsq0sqsk0)_generation_4(sq4sk516sqsq4sqsk516)',
  },
  {
    // PyExecutor: requests in prefill and their tokens, then requests in generation, which have several tokens with drafts.
    pattern:
      /(?:TensorRT-LLM:)?\[Executor\] _forward_step(?: (?<step_index>\d+))?: (?<context_requests>\d+) ctx reqs, (?:(?<context_counts>\d+) ctx tokens, )?(?<generation_requests>\d+) gen reqs/,
    kind: 'other',
    source: 'TensorRT-LLM',
    sample: '[Executor] _forward_step 7: 1 ctx reqs, 512 ctx tokens, 3 gen reqs',
  },
  {
    pattern:
      /(?:.*\.)?step\[(?:EXTEND|PREFILL)(?:\s+bs=(?<batch_size>\d+))?(?:\s+toks=(?<new_tokens>\d+))?.*\]/,
    kind: 'prefill',
    source: 'SGLang',
    sample: 'step[EXTEND bs=15 toks=15360]',
  },
  {
    pattern:
      /(?:.*\.)?step\[(?:DECODE|TARGET_VERIFY|IDLE_DECODE)(?:\s+bs=(?<batch_size>\d+))?(?:\s+toks=(?<new_tokens>\d+))?.*\]/,
    kind: 'decode',
    source: 'SGLang',
    sample: 'step[DECODE bs=32]',
  },
  {
    pattern: /(?:.*\.)?step\[MIXED(?:\s+bs=(?<batch_size>\d+))?(?:\s+toks=(?<new_tokens>\d+))?.*\]/,
    kind: 'mixed',
    source: 'SGLang',
    sample: 'step[MIXED bs=9 toks=2048]',
  },
  {
    pattern: /ProfilerStep#(?<step_index>\d+)/,
    kind: 'other',
    source: 'torch.profiler schedule',
    sample: 'ProfilerStep#3',
  },
  {
    pattern: /(?:.*[\s:./_-])?warm[\s_-]?up(?:[\s:./_#-].*|\d+)?/,
    kind: 'warmup',
    source: 'plain words',
    sample: 'warm-up 2',
  },
  {
    pattern:
      /(?:.*[\s:./_-])?(?:load|load[\s_-]?(?:model|weights)|model[\s_-]?load(?:ing)?|weight[\s_-]?load(?:ing)?)/,
    kind: 'load',
    source: 'plain words',
    sample: 'load_model',
  },
  {
    pattern:
      /(?:.*[\s:./_-])?(?:prefill|prompt[\s_-]?processing|context[\s_-]?phase)(?:[\s_-]?step)?(?:[\s:./_#=[(-]*(?<iteration>\d+)[\])]?)?/,
    kind: 'prefill',
    source: 'plain words',
    sample: 'prefill',
  },
  {
    pattern:
      /(?:.*[\s:./_-])?(?:decode|decoding|generation[\s_-]?phase|token[\s_-]?generation)(?:[\s_-]?(?:step|token))?(?:[\s:./_#=[(-]*(?<step_index>\d+)[\])]?)?/,
    kind: 'decode',
    source: 'plain words',
    sample: 'decode_step_12',
  },
  {
    pattern:
      /(?:.*[\s:./_-])?(?:sampling|sampler|sample(?:[\s_-]?tokens?)?|logits[\s_-]?process(?:or|ing))(?:[\s:./_#=[(-]*(?<step_index>\d+)[\])]?)?/,
    kind: 'sampling',
    source: 'plain words; TensorRT-LLM and vLLM samplers',
    sample: 'sample_tokens',
  },
];
