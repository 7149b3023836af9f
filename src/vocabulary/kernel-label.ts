import { cutMiddle } from './cut.js';

/**
 * Readable labels of kernels for a column: the operation of PyTorch's templates instead of the template's name, and the parts of library
 * names that distinguish kernels. The full name stays in the tables.
 */

/** Generic PyTorch templates: the operation is in their template arguments. */
const templates: readonly [pattern: RegExp, label: string][] = [
  [/^(?:vectorized_|unrolled_|legacy_)?elementwise_kernel\b/, 'elementwise'],
  [/^reduce_kernel\b/, 'reduce'],
  [/^distribution_elementwise_grid_stride_kernel\b/, 'random'],
  [/^(?:index_elementwise|index_kernel|vectorized_gather|gather)_?kernel\b/, 'index'],
];

/** Operations in template arguments, most specific first. */
const operations: readonly RegExp[] = [
  /\b(\w+?)_kernel_cuda\b/,
  /\b(\w+?)_(?:tensor_)?(?:kernel_impl|kernel|cuda_kernel)\(at::TensorIterator/,
  /\b(pow_tensor_scalar|pow_tensor_tensor)_kernel/,
  /\bCUDAFunctor(?:OnSelf|OnOther)?_(\w+)/,
  /\b(?!Binary|BUnary|AUnary|Unary)(\w+?)(?:Functor|Ops)\b/,
  /::(normal|uniform|exponential|bernoulli)_kernel\b/,
];

/** CUTLASS entry points run the functor in their first argument, for FlashAttention 3 and GEMMs. */
const entryPoint = /^(?:device_kernel|Kernel2?)$/;
const functor = /\b(?:device_kernel|Kernel2?)<(?:\w+::)*(?:enable_\w+<(?:\w+::)*)?(\w+)/;

const replacements: readonly [pattern: RegExp, replacement: string][] = [
  // nvjet_sm90_hsh_64x8_64x16_4x1_v_bz_splitK_TNT: architecture and types are the same for all kernels of a model.
  [/^nvjet_(?:sm\d+_)?(?:[a-z]{3}_)?/, 'nvjet '],
  [/(?<=^nvjet .*)_bz\b|(?<=^nvjet .*)_bz(?=_)/, ''],
  [
    /^cudnn_generated_fort_native_(\w+?)_sm\d+_(\w+?)_(?:w?g?mma_)?[a-z]+\d+_knob_\d+_(\d+x\d+x\d+).*/,
    'cudnn $1 $2 $3',
  ],
  [/^(?:void )?(?:sm\d+_xmma|cutlass_\d+)_/, ''],
];

/**
 * Function of a kernel: no return type, template arguments, namespaces or parameters. `void at::elementwise_kernel<128, 4>(int, T2)` ->
 * `elementwise_kernel`. A return type may have template arguments that compare numbers (`std::enable_if<T2>0&&…>::type`).
 */
export function kernelFunction(name: string): string {
  // Not a demangled name, such as "CUDA graph 1".
  if (!/[<(:]/.test(name)) return name.replace(/^void /, '');
  const text = name.replaceAll(/<unnamed>|\(anonymous namespace\)/g, '_');
  const open: string[] = [];
  let outside = '';
  for (let index = 0; index < text.length; index++) {
    const sign = text[index]!;
    if (open.length === 0 && sign === '(' && outside !== '') break;
    if (sign === '<' || sign === '(') open.push(sign);
    else if (sign === ')') open.length = Math.max(0, open.lastIndexOf('('));
    else if (sign === '>' && open.at(-1) === '<' && !/\d/.test(text[index + 1]!)) open.pop();
    else if (open.length === 0) outside += sign;
  }
  return (
    outside
      .trim()
      .split(/::|\s+/)
      .findLast(Boolean) ?? name
  );
}

/** Maximum characters of a name that are matched and shown: longer names repeat template arguments, or are not names. */
const matchedLetters = 1500;
const shownLetters = 160;

/**
 * "elementwise silu", "reduce mean", "nvjet 64x8_64x16_4x1_v_splitK_TNT", "cudnn sdpa flash_fprop 64x64x64"; any other kernel by its name
 * without templates and namespaces.
 * @param name full name in the capture
 * @param tile added if the name has no digits that identify it
 */
export function kernelLabel(name: string, tile: string | null = null): string {
  return cutMiddle(
    uncutLabel(name.slice(0, matchedLetters), kernelFunction(name).slice(0, matchedLetters), tile),
    shownLetters,
  );
}

/**
 * Labels by name of kernels listed together: equal ones get the type, else number, else word, of their full names that the fewest of them
 * have; if that is equal, too, they are numbered.
 */
export function kernelLabels(
  kernels: Iterable<{ name: string; tile?: string | null }>,
): ReadonlyMap<string, string> {
  const labels = new Map<string, string>();
  for (const { name, tile } of kernels) if (!labels.has(name)) labels.set(name, kernelLabel(name, tile));
  const bare = new Map(labels);
  for (const [label, names] of equalLabels(labels)) {
    const words = new Map<string, number>();
    const wordsByName = names.map((name) => new Set(wordsOf(name)));
    for (const word of wordsByName.flatMap((all) => [...all])) words.set(word, (words.get(word) ?? 0) + 1);
    for (const [index, name] of names.entries()) {
      const [rarest] = [...wordsByName[index]!]
        .filter((word) => words.get(word)! < names.length)
        .toSorted((x, y) => words.get(x)! - words.get(y)! || wordRank(x) - wordRank(y));
      // A number alone is a template argument.
      if (rarest !== undefined)
        labels.set(name, /^\d/.test(rarest) ? `${label} <${rarest}>` : `${label}, ${rarest}`);
    }
  }
  const numbered = equalLabels(labels).flatMap(([, names]) => names);
  for (const [label, names] of equalLabels(new Map(numbered.map((name) => [name, bare.get(name)!]))))
    for (const [index, name] of names.toSorted().entries())
      labels.set(name, `${label}, variant ${index + 1}`);
  return labels;
}

/** Labels that several names have, with these names. */
function equalLabels(labels: ReadonlyMap<string, string>): [label: string, names: string[]][] {
  const groups = new Map<string, string[]>();
  for (const [name, label] of labels) groups.set(label, [...(groups.get(label) ?? []), name]);
  return [...groups].filter(([, names]) => names.length > 1);
}

const typeWord = /^(?:c?float|double|half|bfloat16|bool|u?int|long|short|char)\w*$/i;

/** Types say more than template arguments, and these more than names of functions. */
const wordRank = (word: string): number => (typeWord.test(word) ? 0 : /^\d/.test(word) ? 1 : 2);

/** Words of demangled names that say nothing: T2, (instance 1), unsigned. */
const placeholder = /^(?:unnamed|instance|unsigned|lambda|const|T\d+)$/;

/** Words and numbers of a name except namespaces, functions that run an operation, and placeholders; the parts of a library's name. */
const wordsOf = (name: string): string[] =>
  (name.slice(0, matchedLetters).match(/\b\w+\b(?!::)/g) ?? [])
    .flatMap((word) => (word.startsWith('nvjet_') ? word.split('_') : [word]))
    .filter((word) => !/kernel/i.test(word) && !placeholder.test(word));

function uncutLabel(name: string, base: string, tile: string | null): string {
  const template = templates.find(([pattern]) => pattern.test(base));
  const operation = template && operations.map((pattern) => pattern.exec(name)?.[1]).find(Boolean);
  if (template && operation) {
    const words = operation
      .replaceAll(/([a-z])([A-Z])/g, '$1 $2')
      .replaceAll('_', ' ')
      .toLowerCase();
    return words === template[1] ? words : `${template[1]} ${words}`;
  }
  const kernelName = (entryPoint.test(base) && functor.exec(name)?.[1]) || base;
  const short = replacements.reduce((text, [pattern, to]) => text.replace(pattern, to), kernelName);
  return tile === null || short.includes(tile) || /\d+x\d+/.test(short) ? short : `${short} ${tile}`;
}
