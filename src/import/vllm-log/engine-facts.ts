import type { VllmLogFacts } from '../../model/vllm-log.js';
import { argumentSetting, configSettings } from './config-line.js';
import { excerpt, type LogLine } from './lines.js';

/** Facts of the engine, as opposed to one of its GPUs. */
type EngineFacts = Omit<VllmLogFacts, 'ranks' | 'starts' | 'reason' | 'checkpoint' | 'failure'>;
type Field = keyof EngineFacts;
type ValueOf<F extends Field> = NonNullable<EngineFacts[F]>['value'];

/** The line with an engine's configuration; group 1 is V0 or V1 (absent before 0.7), group 2 the version. */
export const configLine = /Initializing an? (?:(V[01]) )?LLM engine(?: \(v?([^)]*)\))? with config: /;
/** Lines with the arguments, printed before the engine starts. */
export const argumentsLine =
  /\bargs: (?:Namespace\(|\{)|(?:^|\s)Namespace\(|vLLM API server version (?<version>\S+)/;

const integer = (text: string) => (/^\d+$/.test(text) ? Number(text) : undefined);
const fraction = (text: string) => (/^(?:1(?:\.0*)?|0?\.\d+)$/.test(text) ? Number(text) : undefined);
const trueOrFalse = (text: string) => (text === 'True' ? true : text === 'False' ? false : undefined);
const word = (text: string) => (text === '' || text === 'None' ? undefined : text);
const groupedInteger = (text: string) => integer(text.replaceAll(',', ''));
const typeName = (text: string) => word(text.replace(/^torch\./, ''));

/** Parses a value as vLLM prints it; undefined if it carries no information. */
const parsers: { [F in Field]: (text: string) => ValueOf<F> | undefined } = {
  version: (text) => (text === 'dev' ? undefined : word(text)),
  engine: (text) => (text === 'V0' || text === 'V1' ? text : undefined),
  model: word,
  dtype: typeName,
  quantization: (text) => (text === 'None' ? null : word(text)),
  kv_cache_dtype: typeName,
  tensor_parallel_size: integer,
  pipeline_parallel_size: integer,
  data_parallel_size: integer,
  max_model_len: groupedInteger,
  gpu_memory_utilization: fraction,
  max_num_batched_tokens: groupedInteger,
  max_num_seqs: integer,
  enforce_eager: trueOrFalse,
  enable_prefix_caching: trueOrFalse,
  block_size: integer,
  kv_cache_blocks: groupedInteger,
  cpu_blocks: groupedInteger,
  kv_cache_tokens: groupedInteger,
  max_concurrency(text) {
    const match = /^([\d,]+) tokens per request: ([\d.]+)x$/.exec(text);
    return match ? { tokens: Number(match[1]!.replaceAll(',', '')), requests: Number(match[2]) } : undefined;
  },
  init_seconds: (text) => Number(text),
};

/** Names in the configuration line. */
const configNames: Record<string, Field> = {
  model: 'model',
  dtype: 'dtype',
  quantization: 'quantization',
  kv_cache_dtype: 'kv_cache_dtype',
  tensor_parallel_size: 'tensor_parallel_size',
  pipeline_parallel_size: 'pipeline_parallel_size',
  data_parallel_size: 'data_parallel_size',
  max_seq_len: 'max_model_len',
  enforce_eager: 'enforce_eager',
  enable_prefix_caching: 'enable_prefix_caching',
};

/** Command-line arguments that the configuration line does not repeat, or that apply if it is missing. */
const argumentNames: Field[] = [
  'gpu_memory_utilization',
  'block_size',
  'max_num_seqs',
  'max_num_batched_tokens',
  'tensor_parallel_size',
  'pipeline_parallel_size',
  'data_parallel_size',
  'max_model_len',
  'kv_cache_dtype',
];

/** Separate lines. `isDecided` values are the engine's decision and replace those of the configuration or the arguments. */
const patterns: { field: Field; pattern: RegExp; isDecided?: boolean; keep?: 'min' }[] = [
  { field: 'gpu_memory_utilization', pattern: /x gpu_memory_utilization \(([\d.]+)\)/, isDecided: true },
  { field: 'gpu_memory_utilization', pattern: /GiB gpu_memory_utilization=([\d.]+)/, isDecided: true },
  {
    field: 'gpu_memory_utilization',
    pattern: /[Dd]esired GPU memory utilization (?:is )?\(([\d.]+),/,
    isDecided: true,
  },
  // The advice about CUDA graphs prints the argument with four digits.
  {
    field: 'gpu_memory_utilization',
    pattern: /The current --gpu-memory-utilization=([\d.]+) is/,
    isDecided: true,
  },
  { field: 'max_model_len', pattern: /Using max model len (\d+)/ },
  {
    field: 'max_num_batched_tokens',
    pattern: /Chunked prefill is enabled with max_num_batched_tokens=(\d+)/,
    isDecided: true,
  },
  {
    field: 'block_size',
    pattern: /(?:Setting attention|Setting kv cache|Forcing kv cache) block size to (\d+)/,
    isDecided: true,
  },
  // 0.6: "# GPU blocks: 9930, # CPU blocks: 2048", 0.7: "# CUDA blocks", 0.8: "# cuda blocks"
  { field: 'kv_cache_blocks', pattern: /# (?!CPU)\w+ blocks: (\d+)/, keep: 'min' },
  { field: 'cpu_blocks', pattern: /# CPU blocks: (\d+)/ },
  {
    field: 'kv_cache_blocks',
    pattern: /cache_config_info with initialization after num_gpu_blocks is: (\d+)/,
    keep: 'min',
  },
  { field: 'kv_cache_tokens', pattern: /\b[A-Z]+ KV cache size: ([\d,]+) tokens/, keep: 'min' },
  {
    field: 'max_concurrency',
    pattern: /Maximum concurrency for ([\d,]+ tokens per request: [\d.]+x)/,
  },
  { field: 'init_seconds', pattern: /init engine \([^)]*\) took ([\d.]+) s/ },
];

/** Reads one engine start. */
export function engineFacts(lines: LogLine[]): EngineFacts {
  const facts = Object.fromEntries(Object.keys(parsers).map((field) => [field, null])) as EngineFacts;
  const decided = new Set<Field>();
  const putFact = <F extends Field>(
    field: F,
    text: string,
    { line, index, length }: { line: LogLine; index: number; length: number },
    options: { isDecided?: boolean | undefined; keep?: 'min' | undefined } = {},
  ) => {
    const value = parsers[field](text);
    if (value === undefined) return;
    const earlier = facts[field]?.value;
    if (earlier !== undefined && earlier !== null) {
      if (options.keep === 'min' ? !(value! < earlier) : !options.isDecided || decided.has(field)) return;
    }
    if (options.isDecided) decided.add(field);
    const fact = { value, line: excerpt(line.text, index, length), line_number: line.number };
    facts[field] = fact as unknown as EngineFacts[F];
  };

  for (const line of lines) {
    const config = configLine.exec(line.text);
    if (config) {
      const place = { line, index: config.index, length: config[0].length };
      putFact('engine', config[1] ?? 'V0', place);
      putFact('version', config[2] ?? '', place, { isDecided: true });
      for (const [name, { value, index }] of configSettings(line.text, config.index + config[0].length)) {
        const field = configNames[name];
        if (field)
          putFact(field, value, { line, index, length: value.length + name.length + 1 }, { isDecided: true });
      }
    } else if (argumentsLine.test(line.text)) {
      const version = argumentsLine.exec(line.text)?.groups?.['version'];
      if (version !== undefined) putFact('version', version, { line, index: 0, length: line.text.length });
      for (const field of argumentNames) {
        const setting = argumentSetting(line.text, field);
        if (setting)
          putFact(field, setting.value, {
            line,
            index: setting.index,
            length: field.length + setting.value.length + 1,
          });
      }
    }
    for (const { field, pattern, ...options } of patterns) {
      const match = pattern.exec(line.text);
      if (match) putFact(field, match[1]!, { line, index: match.index, length: match[0].length }, options);
    }
  }
  return facts;
}
