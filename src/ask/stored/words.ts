import { cutEnd } from '../../vocabulary/cut.js';

const fillers = new Set(
  'enough a an and any are as at be been being by can could did do does for from get give had has have i if in is it its let like make me mean more most my of on one or our out per should show so some tell than that the their them then there these they this those to too up us was we well were what when where which while who will with would you your'.split(
    ' ',
  ),
);

/** Words of most questions: they only decide between phrases that are otherwise equal. */
const weakWords = new Set('during far how long many much run spend step take time why'.split(' '));

/** Synonyms in questions about a session, each mapped to one word. */
const synonymOf = new Map(
  Object.entries({
    alloc: 'cudamalloc cudafree allocs allocation allocations allocator allocate allocated malloc mallocs',
    batch: 'bs batches batching',
    bottleneck: 'bottlenecks',
    bound: 'bounds bounded limits limited',
    clock: 'clocks frequency frequencies',
    communication: 'comm comms nccl',
    context: 'ctx contexts',
    copy: 'copies copied transfer transfers transferred memcpy',
    cpu: 'cpus',
    gpu: 'gpus device devices card cards accelerator accelerators',
    hbm: 'dram',
    host: 'hosts',
    kernel: 'kernels',
    memory: 'mem vram',
    quantize: 'quantise quantized quantised quantization quantisation',
    rank: 'ranks worker workers',
    second: 's sec seconds',
    spend: 'spent',
    take: 'takes taken',
    time: 'times',
    serial: 'serialize serialise serialized serialised',
    sync: 'syncs synchronize synchronise synchronizing synchronous synchronisations synchronizations synchronization synchronisation',
    thermal: 'heat hot overheat overheating temp temperature',
    token: 'tok tokens',
    trust: 'believe rely reliable',
    use: 'used uses usage util utilization utilisation utilized utilised',
  }).flatMap(([word, synonyms]) => synonyms.split(' ').map((synonym): [string, string] => [synonym, word])),
);

/** Terms as stems in order, without fillers: "launches" and "launch", "copies" and "memcpy" become equal. */
export const termsOf = (text: string): string[] =>
  text
    .toLowerCase()
    .replaceAll(/['']s\b/g, '')
    .split(/[^\p{L}\d]+/u)
    .filter((word) => word !== '' && !fillers.has(word))
    .map((word) => stem(synonymOf.get(word) ?? word));

export const isWeak = (term: string): boolean => weakWords.has(term);

export const tokensOf = (text: string): Set<string> => new Set(termsOf(text).filter((term) => !isWeak(term)));

function stem(word: string): string {
  if (word.length <= 3) return word;
  if (word.endsWith('ies')) return `${word.slice(0, -3)}y`;
  const bare = word.replace(/(?:i[sz]ations?|i[sz]e[ds]?|ations?|ing|ed|es|e|s)$/, '');
  return bare.length >= 3 ? bare : word;
}

/** Number of words of the question that a text also has. */
export function overlap(tokens: ReadonlySet<string>, text: string): number {
  const textTokens = tokensOf(text);
  return [...tokens].filter((token) => textTokens.has(token)).length;
}

/** The text as a sentence, with a capital letter and a full stop. */
export function asSentence(text: string): string {
  const sentence = text.trim().replace(/^\p{Ll}/u, (letter) => letter.toUpperCase());
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`;
}

export const shortened = (name: string): string => cutEnd(name, 70);
