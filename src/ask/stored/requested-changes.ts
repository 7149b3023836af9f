/** Changes in a question, in the format of `explain --what-if`. */
export interface RequestedChanges {
  /** Predictions to make, each with one or more changes. */
  alternatives: string[][];
  /** Changes without a prediction, with the command that measures them. */
  unknown: { what: string; how: string }[];
}

/** Phrases about something that was not run: "what if", "would … help", "how fast would", "should we", "what does … bring". */
const hypothetical =
  /\b(what if|what['']?s if|what happens|would|could|should|if (?:i|we|you|it)\b|suppose|expect\w*|predict\w*|worth|benefit\w*|bring\w*|gain\w*|sav(?:e|es|ing)|help\w*|instead of|switch\w* to|mov(?:e|ing) to|upgrad\w*|going to|faster (?:with|on|at|in)|speed[- ]?up (?:from|with|of)|larger|bigger|doubl\w*|twice|halv\w*)\b/i;

type ChangeReader = (text: string, workload: QuestionWorkload) => string[];

export interface QuestionWorkload {
  batchSize: number | null;
  contextLen: number | null;
  gpus: readonly string[];
}

const count = (text: string): number =>
  Math.round(Number(text.replace(/k$/i, '')) * (/k$/i.test(text) ? 1024 : 1));

/** Numbers in "8, 16 and 32" or "8/16". */
const numbersIn = (text: string): number[] =>
  [...text.matchAll(/\d+(?:\.\d+)?k?/gi)].map(([numberText]) => count(numberText));

const numberList = String.raw`(\d+(?:\.\d+)?k?(?:\s*(?:,|\/|and|or|,\s*(?:and|or))\s*\d+k?)*)`;
const pattern = (source: string) => new RegExp(source, 'i');

const batchPatterns = [
  pattern(
    String.raw`\bbatch(?:[- _]?sizes?|es)?(?:\s+(?:of|to|at|were|was|is|with|from \d+ to))*\s*[=:]?\s*${numberList}\b`,
  ),
  pattern(String.raw`\bbs\s*[=:]?\s*${numberList}\b`),
  pattern(
    String.raw`\b${numberList}\s+(?:sequences|prompts|streams|users|concurrent|requests at (?:once|a time)|in a batch)\b`,
  ),
];
const contextPatterns = [
  pattern(
    String.raw`\b(?:context|prompts?|sequence|input|kv cache)(?:[- _]?(?:len(?:gth)?s?|window|size))?(?:\s+(?:of|to|at|were|was|is|with))*\s*[=:]?\s*${numberList}\b`,
  ),
  pattern(
    String.raw`\b${numberList}[- ]?(?:tokens?\b(?: of)?(?: context| prompt| long)?|(?:token )?(?:context|prompts?)\b)`,
  ),
];

function numbersBy(patterns: readonly RegExp[], text: string): number[] {
  const found = patterns.flatMap((regex) => regex.exec(text)?.slice(1, 2) ?? []);
  return found.length === 0 ? [] : numbersIn(found[0]!).filter((size) => size >= 1);
}

const changeReaders: readonly ChangeReader[] = [
  (text, { batchSize }) => {
    const numbers = numbersBy(batchPatterns, text);
    if (numbers.length > 0) return numbers.map((size) => `batch-size=${size}`);
    if (!/\bbatch/i.test(text)) return [];
    const times = /\b(?:doubl\w*|twice|2x|2 ×)\b/i.test(text)
      ? 2
      : /\bquadrupl\w*|\b4x\b/i.test(text)
        ? 4
        : /\b(?:larger|bigger|higher|more|rais\w*|increas\w*)\b/i.test(text)
          ? 8
          : null;
    return times === null ? [] : [`batch-size=${(batchSize ?? 1) * times}`];
  },
  (text, { contextLen }) => {
    const numbers = numbersBy(contextPatterns, text);
    if (numbers.length > 0) return numbers.map((tokens) => `context-len=${tokens}`);
    const grows = /\b(?:doubl\w*|twice|longer)\b.*\b(?:context|prompt|sequence)/i.test(text);
    return grows && contextLen !== null ? [`context-len=${2 * contextLen}`] : [];
  },
  (text) => {
    const names: [RegExp, string][] = [
      [/\b(?:fp8|float8|f8|e4m3|e5m2)\b/i, 'dtype=float8'],
      [/\b(?:int8|w8a8|8[- ]?bit)\b/i, 'dtype=int8'],
      [/\b(?:int4|w4a16|4[- ]?bit|awq|gptq|q4\w*)\b/i, 'dtype=int4'],
      [/\b(?:bf16|bfloat16)\b/i, 'dtype=bfloat16'],
      [/\b(?:fp16|float16|f16|half precision)\b/i, 'dtype=float16'],
    ];
    const named = names.filter(([word]) => word.test(text)).map(([, change]) => change);
    return named.length === 0 && /\bquanti[sz]\w*/i.test(text) ? ['dtype=float8', 'dtype=int4'] : named;
  },
  (text) =>
    /\b(?:cuda[- ]?graphs?|graph (?:capture|replay)|reduce-overhead)\b/i.test(text) ? ['cudagraph'] : [],
  (text) =>
    /\b(?:flash[- ]?att\w*|fused? attention|fus\w* (?:the )?attention|sdpa|flashinfer|fa[23])\b/i.test(text)
      ? ['fused-attention']
      : [],
  (text) =>
    /\bfus(?:e|ed|ing|ion)\b(?!.{0,12}attention)|\btorch\.?compile\b(?!.*reduce-overhead)|\bliger\b/i.test(
      text,
    )
      ? ['fused-elementwise']
      : [],
  (text) =>
    /\b(?:without|no|remov\w*|avoid\w*|drop\w*|got rid of|get rid of|eliminat\w*)\b.{0,20}(?:\bsync\w*|\.item\(\)|\.cpu\(\))/i.test(
      text,
    )
      ? ['no-sync']
      : [],
  (text) =>
    /\bpin(?:ned|ning)?[- ](?:memory|cop\w*|buffers?)\b|\bpin_memory\b/i.test(text) ? ['pinned-copies'] : [],
  (text) =>
    /\b(?:without|no|remov\w*|fix\w*|replac\w*)\b.{0,30}\b(?:slow\w* rank|straggler)/i.test(text)
      ? ['no-slow-rank']
      : [],
  (text) =>
    /\b(?:without|no|fix\w*|equal)\b.{0,30}\b(?:slow\w* link|links)\b/i.test(text) ? ['equal-links'] : [],
  (_, { gpus }) => {
    // One sheet per GPU model: the first that contains its word, as in --what-if.
    const sheetByModel = new Map<string, string>();
    for (const name of gpus) {
      const gpuModel = /\b(?:RTX \w+|[A-Z]{1,3}\d+[A-Z]{0,2})\b/.exec(name)?.[0] ?? name;
      if (!sheetByModel.has(gpuModel)) sheetByModel.set(gpuModel, name);
    }
    return [...sheetByModel.values()].map((name) => `gpu=${name}`);
  },
];

const unpredicted: readonly { question: RegExp; what: string; how: string }[] = [
  {
    question: /\bspeculat\w*|\bdraft model\b|\bmedusa\b|\beagle\b|\bmulti[- ]?token predict\w*/i,
    what: 'Speculative decoding is not predicted: its gain depends on how many drafted tokens are accepted.',
    how: 'inferscope bench latency --engine vllm --engine-arg speculative_config=…',
  },
  {
    question:
      /\btensor[- ]?parallel\w*|\bpipeline[- ]?parallel\w*|\btp\s?=?\s?\d\b|\b(?:two|four|eight|more|\d+)\s+gpus\b|\bmulti[- ]?gpu\b/i,
    what: 'Another number of GPUs is not predicted: their communication was not measured here.',
    how: 'inferscope run --evaluator none,nsys -- <command on so many GPUs>',
  },
  {
    question:
      /\b(?:move|switch|chang\w*|use|try|with|on)\b.{0,12}\b(?:vllm|sglang|tensorrt|trt-?llm|llama\.cpp|tgi|onnx)\b/i,
    what: 'Another engine is not predicted: its kernels and scheduler differ.',
    how: 'inferscope bench latency --engine <engine> --model <model>',
  },
  {
    question: /\b(?:prun\w*|sparsit\w*|distil\w*|smaller model|another model|different model)\b/i,
    what: 'Another model is not predicted from this session.',
    how: 'inferscope predict --model <model>',
  },
];

/** Changes in the question; null if it asks for none. */
export function requestedChanges(text: string, workload: QuestionWorkload): RequestedChanges | null {
  if (!hypothetical.test(text)) return null;
  const changesByReader = changeReaders
    .map((reader) => reader(text, workload))
    .filter((changes) => changes.length > 0);
  const unknown = unpredicted
    .filter(({ question }) => question.test(text))
    .map(({ what, how }) => ({ what, how }));
  if (changesByReader.length === 0) return unknown.length === 0 ? null : { alternatives: [], unknown };
  const areAlternatives =
    /\bor\b|\bversus\b|\bvs\b/i.test(text) || changesByReader.some((changes) => changes.length > 1);
  const alternatives = areAlternatives
    ? changesByReader.flat().map((change) => [change])
    : [changesByReader.map((changes) => changes[0]!)];
  return { alternatives: alternatives.slice(0, 4), unknown };
}
