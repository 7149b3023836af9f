import type { CompareResult } from '../../model/documents/compare.js';
import type { ManifestData } from '../../model/manifest.js';
import type { Side } from './side.js';

type Difference = CompareResult['environment'][number];

/** How a difference bears on time; by what its label contains. */
const explanations: readonly { pattern: RegExp; text: string }[] = [
  { pattern: /batch size/, text: 'more sequences a step: larger GEMMs, the same weights read' },
  { pattern: /dtype|quantization/, text: 'bytes of the weights and the tensor cores that compute' },
  { pattern: /input len|output len/, text: 'context length: attention and KV cache grow with it' },
  { pattern: /model/, text: 'another model' },
  { pattern: /tensor parallel/, text: 'how the model is spread over GPUs' },
  { pattern: /gpu name|gpu sm|gpu memory bandwidth|compute capability/, text: 'another GPU' },
  { pattern: /driver/, text: 'launch cost and libraries of the driver' },
  {
    pattern: /torch|cuda|cublas|cudnn|triton|transformers|vllm|engine|onnxruntime/,
    text: 'other kernels chosen or built',
  },
  { pattern: /^arguments$/, text: 'what the program was asked to do' },
  { pattern: /clock/, text: 'clocks scale kernel time directly' },
  { pattern: /power limit/, text: 'a lower limit lowers clocks under load' },
  {
    pattern: /cpu|node|kernel|python|threads|governor/,
    text: 'host speed: launch overhead and time between steps',
  },
  { pattern: /option/, text: 'engine options change which kernels run and how they are launched' },
];

/** Facts that bear on no time. */
export const irrelevant = /^(inferscope|v8|distribution|memory total|memory limit)/;

/** What differs between the sessions' workloads, engines, machines and clocks; what is the same is left out. */
export function environmentDifferences(sides: readonly Side[]): Difference[] {
  const facts = sides.map(({ session }) => factsOf(session.manifest));
  const keys = [...new Set(facts.flatMap((one) => [...one.keys()]))];
  const found = keys.flatMap((key): Difference[] => {
    const values = facts.map((one) => one.get(key)?.value ?? null);
    const known = values.filter((value) => value !== null);
    if (new Set(values).size < 2 || known.length === 0 || irrelevant.test(key)) return [];
    const part = facts.find((one) => one.has(key))!.get(key)!.part;
    return [{ label: key, part, values, could_explain: explanation(key) }];
  });
  return [...argumentDifference(sides), ...found, ...clockDifferences(sides)];
}

function explanation(label: string): string | null {
  return explanations.find(({ pattern }) => pattern.test(label))?.text ?? null;
}

export function factsOf({ workload, hardware, software }: ManifestData) {
  const facts = new Map<string, { part: Difference['part']; value: string }>();
  const put = (part: Difference['part'], label: string, value: unknown) => {
    if (value !== null && value !== undefined) facts.set(label, { part, value: String(value) });
  };
  if (workload) {
    const { model, engine } = workload;
    put('workload', 'model', model?.name);
    put('workload', 'dtype', model?.dtype);
    put('workload', 'quantization', model?.quantization);
    put('workload', 'batch size', workload.batch_size);
    put('workload', 'input len', workload.input_len);
    put('workload', 'output len', workload.output_len);
    put('workload', 'tensor parallel size', workload.tensor_parallel_size);
    put('workload', 'threads', workload.threads);
    put('engine', 'engine', [engine.name, engine.version].filter(Boolean).join(' '));
    for (const [name, value] of Object.entries(engine.options)) put('engine', `option ${name}`, value);
  }
  for (const [name, value] of Object.entries(hardware)) put('hardware', name.replaceAll('_', ' '), value);
  for (const [name, value] of Object.entries(software)) put('software', name.replaceAll('_', ' '), value);
  return facts;
}

/** Words of the profiled commands that are not in all of them, in their order; none where a command is not known. */
function argumentDifference(sides: readonly Side[]): Difference[] {
  const commands = sides.map(
    ({ session }) => session.manifest.executions.find(({ command }) => command.length > 0)?.command ?? null,
  );
  const known = commands.filter((command) => command !== null);
  if (known.length < sides.length) return [];
  const inAll = (word: string) => known.every((command) => command.includes(word));
  // An option goes with its value, also where the value alone differs.
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
  const told = values.map((value) => value || '(not given)');
  return [{ label: 'arguments', part: 'workload', values: told, could_explain: explanation('arguments') }];
}

/** Sampled means differ by chance: from 2 % on they could explain a change. */
function clockDifferences(sides: readonly Side[]): Difference[] {
  const labels = [...new Set(sides.flatMap(({ clocks }) => clocks.map(({ label }) => label)))];
  return labels.flatMap((label): Difference[] => {
    const values = sides.map(({ clocks }) => clocks.find((one) => one.label === label)?.values[0] ?? null);
    const numbers = values.filter((value) => value !== null).map(Number);
    if (numbers.length < 2 || Math.max(...numbers) < 1.02 * Math.min(...numbers)) return [];
    return [{ label, part: 'clocks', values, could_explain: explanation(label) }];
  });
}
