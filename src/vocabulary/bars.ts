import { type BarHead, barParts, classOfBar } from '../model/bars.js';
import { idleCauses } from './idle-causes.js';
import { classLabel } from './op-classes.js';

const idle = (id: string): string => idleCauses[id]!.meaning;

/** Meaning of a bar's time by the head of its id: `inefficiency.gemm` is a bar of `inefficiency`. */
export const barMeanings: Readonly<Record<BarHead, string>> = {
  roofline: 'time of the necessary FLOPs and bytes of the stage at the device peaks, fully overlapped',
  serial: 'extra time because operations run one after another, each at its own limit',
  kernels: 'time of operations of a class that has no known roofline',
  inefficiency: 'time of operations of a class above their roofline',
  nonessential: 'time of operations that fusion or another choice would remove: elementwise, copies, casts',
  exposed_comm: 'communication while nothing computes',
  exposed_copy: 'copies while no kernel runs, by direction and kind of host memory',
  launch_latency: idle('launch_latency'),
  launch_overhead: idle('launch_overhead'),
  synchronization: idle('synchronization'),
  device_dependency: idle('device_dependency'),
  host: 'GPU idle because the host is busy with something else, by host activity',
  unattributed: 'measured time that the session does not explain',
  profiler_overhead: 'time added by the profiler, if the workload was also measured without it',
};

/**
 * Noun for the count of a bar, singular and plural. Gaps with a launch call in them are not all launches: a launch while the device is busy
 * leaves no gap.
 */
export function barCountNoun(id: string, onCpu: boolean): readonly [one: string, several: string] {
  const { head, tail } = barParts(id);
  if (head === 'exposed_copy') return tail === 'memset' ? ['memset', 'memsets'] : ['copy', 'copies'];
  if (classOfBar(id) === null && head !== 'exposed_comm') return ['gap', 'gaps'];
  if (tail === 'graph') return ['graph', 'graphs'];
  return onCpu ? ['operator', 'operators'] : ['kernel', 'kernels'];
}

const headLabels: Readonly<Partial<Record<BarHead, string>>> = {
  roofline: 'roofline',
  serial: 'one operation after another',
  exposed_comm: 'exposed communication',
  unattributed: 'not explained',
  profiler_overhead: 'added by the profiler',
};

const copyLabels: Readonly<Record<string, string>> = {
  htod: 'H2D copies',
  dtoh: 'D2H copies',
  dtod: 'D2D copies',
  ptop: 'P2P copies',
  htoh: 'host copies',
  memset: 'memset',
};

/** "H2D" for the direction HtoD of a recorded copy, as in the bars. */
export const copyDirection = (kind: string): string =>
  copyLabels[kind.toLowerCase()]?.replace(/ copies$/, '') ?? kind;

/** Exposed communication of a rank of a job, by kind. */
const communication: Readonly<Record<string, BarWords>> = {
  wire: {
    label: 'exposed exchange',
    meaning: 'communication once all ranks have arrived, while nothing computes',
  },
  skew: { label: 'waiting for a late rank', meaning: 'in collectives, until the last rank arrives' },
  imbalance: {
    label: 'waiting for uneven experts',
    meaning: 'in all-to-all calls, for the rank that receives most, and its larger part',
  },
};

interface BarWords {
  label: string;
  meaning: string | null;
}

/** Kinds of host time, which timelines show as one cause. */
const hostWords: Readonly<Record<string, BarWords>> = {
  program: {
    label: 'host between launches',
    meaning: 'the launching thread was busy: Python, framework, program',
  },
  loading_code: { label: 'host loading code', meaning: 'compiling, linking or loading on first use' },
  framework: { label: 'host inside operators', meaning: 'operators of the framework' },
  between_operators: { label: 'host between operators', meaning: 'Python, the program' },
  runtime_dispatch: { label: 'runtime between operators', meaning: 'starting the next operator' },
  runtime_call: { label: 'runtime around the call', meaning: 'entering and leaving the call' },
  sampling: { label: 'host choosing the next token', meaning: null },
  loop: { label: 'host loop around the calls', meaning: null },
  dispatch: { label: 'host dispatching kernels', meaning: 'Python, framework, launch calls' },
  idle_cores: { label: 'idle cores', meaning: 'the engine may use more cores than it kept busy' },
};

/** The label and meaning of a bar. */
export function barWords(id: string): BarWords {
  const { head, tail } = barParts(id);
  const meaning = head === null ? null : barMeanings[head];
  const opClass = classOfBar(id);
  if (opClass !== null) {
    // "other, as measured" would be unclear without a noun.
    const name = opClass === 'other' ? 'other operations' : classLabel(opClass);
    if (head === 'inefficiency') return { label: `${name} above roofline`, meaning };
    return { label: head === 'nonessential' ? `avoidable ${name}` : `${name}, as measured`, meaning };
  }
  if (head === 'exposed_copy') {
    const [direction = '', memory] = tail.split('_');
    const what = copyLabels[direction] ?? direction;
    return { label: `exposed ${what}${memory ? ` (${memory})` : ''}`, meaning };
  }
  if (head === 'exposed_comm' && communication[tail]) return communication[tail];
  const headLabel = (head && headLabels[head]) ?? null;
  if (headLabel !== null) return { label: headLabel, meaning };
  return (
    (head === 'host' ? hostWords[tail] : null) ??
    idleCauses[id] ?? { label: id.replaceAll(/[._]/g, ' '), meaning }
  );
}
