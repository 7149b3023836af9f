import type { CompareResult } from '../../model/documents/compare.js';
import type { ManifestData } from '../../model/manifest.js';
import { factOf } from '../../vocabulary/facts.js';
import { settingLabel } from '../../vocabulary/memory-components.js';
import { formatQuantity } from '../../vocabulary/format.js';
import { metricLabel, metricUnit, scopeLabel } from '../../vocabulary/sampled-metrics.js';
import { countParameters } from '../../llm/parameters.js';
import { architectureOf } from './architecture.js';
import type { Side } from './side.js';

type Difference = CompareResult['environment'][number];

/** How a difference can change times, by fact id: the name in the manifest, or the part it belongs to. */
const explanations: readonly { pattern: RegExp; text: string }[] = [
  { pattern: /^batch_size$/, text: 'sequences per step: the size of GEMMs, not the weights read' },
  { pattern: /dtype|quantization/, text: 'bytes of the weights and the tensor cores that compute' },
  { pattern: /^(input|output)_len$/, text: 'context length: attention and KV cache grow with it' },
  { pattern: /^(model|model_size)$/, text: 'another model' },
  { pattern: /^tensor_parallel_size$/, text: 'how the model is spread over GPUs' },
  { pattern: /^world_size$/, text: 'the work of a step is spread over another number of ranks' },
  { pattern: /gpu_name|gpu_sm|gpu_memory_bandwidth|compute_capability/, text: 'another GPU' },
  { pattern: /driver/, text: 'launch cost and libraries of the driver' },
  {
    pattern: /torch|cuda|cublas|cudnn|triton|transformers|vllm|engine|onnxruntime/,
    text: 'other kernels chosen or built',
  },
  { pattern: /^arguments$/, text: 'what the program was asked to do' },
  { pattern: /clock/, text: 'clocks scale kernel time directly' },
  { pattern: /power_limit/, text: 'a lower limit lowers clocks under load' },
  { pattern: /^(power|temperature)/, text: 'a GPU at its power or temperature limit lowers its clocks' },
  {
    pattern: /cpu|node|kernel|python|threads|governor/,
    text: 'host speed: launch overhead and time between steps',
  },
  { pattern: /^option_/, text: 'engine options change which kernels run and how they are launched' },
];

/** Facts that do not affect times. */
const irrelevant = /^(inferscope|v8|distribution|memory_total|memory_limit)/;

/** Differences between the sessions' workloads, engines, machines and clocks. */
export function environmentDifferences(sides: readonly Side[]): Difference[] {
  const facts = sides.map(({ session }) => factsOf(session.manifest));
  const keys = [...new Set(facts.flatMap((fact) => [...fact.keys()]))];
  const differences = keys.flatMap((key): Difference[] => {
    const values = facts.map((fact) => fact.get(key)?.value ?? null);
    const known = values.filter((value) => value !== null);
    if (new Set(values).size < 2 || known.length === 0) return [];
    const { label, part } = facts.find((fact) => fact.has(key))!.get(key)!;
    // What one session does not record need not differ.
    const couldExplain = known.length < values.length ? null : explanation(key);
    return [{ label, part, values, could_explain: couldExplain }];
  });
  return [...argumentDifference(sides), ...differences, ...clockDifferences(sides)];
}

function explanation(id: string): string | null {
  return explanations.find(({ pattern }) => pattern.test(id))?.text ?? null;
}

/** Facts of a session that can change times, by id. */
export function factsOf({ workload, hardware, software }: ManifestData) {
  const facts = new Map<string, { part: Difference['part']; label: string; value: string }>();
  const put = (part: Difference['part'], id: string, value: unknown, label?: string) => {
    // An import writes "unknown" for what its record does not state.
    if (value === null || value === undefined || value === 'unknown' || irrelevant.test(id)) return;
    const { name, value: shown } = factOf({ id, value: String(value) });
    const text = typeof shown === 'string' ? shown : formatQuantity(shown.n, shown.unit, shown.digits);
    facts.set(id, { part, label: label ?? (part === 'workload' ? settingLabel(id) : name), value: text });
  };
  if (workload) {
    const { model, engine } = workload;
    put('workload', 'model', model?.name);
    const architecture = architectureOf({ workload });
    if (architecture)
      put(
        'workload',
        'model_size',
        formatQuantity(countParameters(architecture).total, 'parameters'),
        'model size',
      );
    put('workload', 'dtype', model?.dtype);
    put('workload', 'quantization', model?.quantization);
    put('workload', 'batch_size', workload.batch_size);
    put('workload', 'input_len', workload.input_len);
    put('workload', 'output_len', workload.output_len);
    put('workload', 'tensor_parallel_size', workload.tensor_parallel_size);
    put('workload', 'threads', workload.threads);
    put('engine', 'engine', [engine.name, engine.version].filter(Boolean).join(' '));
    for (const [name, value] of Object.entries(engine.options))
      put('engine', `option_${name}`, value, `option ${name}`);
  }
  for (const [name, value] of Object.entries(hardware)) put('hardware', name, value);
  for (const [name, value] of Object.entries(software)) put('software', name, value);
  return facts;
}

/** The label of differences between commands. */
export const argumentsLabel = 'arguments';

/** Words of the profiled commands that are not in all of them, in order; empty if a command is unknown. */
function argumentDifference(sides: readonly Side[]): Difference[] {
  const commands = sides.map(
    ({ session }) => session.manifest.executions.find(({ command }) => command.length > 0)?.command ?? null,
  );
  const known = commands.filter((command) => command !== null);
  if (known.length < sides.length) return [];
  const inAll = (word: string) => known.every((command) => command.includes(word));
  // An option is listed with its value, even if only the value differs.
  const values = known.map((command) =>
    command
      .filter((word, i) => {
        const next = command[i + 1];
        return (
          !inAll(word) ||
          (word.startsWith('-') && next !== undefined && !next.startsWith('-') && !inAll(next))
        );
      })
      .join(' '),
  );
  if (new Set(values).size < 2) return [];
  const found = values.map((value) => value || '(not given)');
  return [
    { label: argumentsLabel, part: 'workload', values: found, could_explain: explanation('arguments') },
  ];
}

/** Sampled means vary by chance: only differences from 2 % on may explain a change. */
function clockDifferences(sides: readonly Side[]): Difference[] {
  const first = sides.flatMap(({ clocks }) => clocks);
  const keys = new Map(first.map(({ gpu, metric }) => [`${gpu} ${metric}`, { gpu, metric }]));
  return [...keys.values()].flatMap(({ gpu, metric }): Difference[] => {
    const means = sides.map(
      ({ clocks }) => clocks.find((clock) => clock.gpu === gpu && clock.metric === metric)?.mean ?? null,
    );
    const known = means.filter((mean) => mean !== null);
    if (known.length < 2 || Math.max(...known) < 1.02 * Math.min(...known)) return [];
    const values = means.map((mean) => (mean === null ? null : formatQuantity(mean, metricUnit(metric))));
    const label = `${scopeLabel(gpu)} ${metricLabel(metric)}`;
    return [{ label, part: 'clocks', values, could_explain: explanation(metric) }];
  });
}
