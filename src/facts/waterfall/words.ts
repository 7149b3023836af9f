import type { WaterfallBar, WaterfallKind } from '../../model/documents/explain.js';

type Told = Pick<WaterfallBar, 'label' | 'confidence' | 'confidence_why' | 'sharpen'>;

const withNcu = 'inferscope run --evaluator ncu -- <command>';
const withTorch = 'inferscope run --evaluator torch -- <command>';
const withNsys = 'inferscope run --evaluator nsys -- <command>';

const classWords: Record<string, string> = {
  gemm: 'matrix products',
  attention: 'attention',
  norm: 'norms',
  elementwise: 'elementwise kernels',
  copy: 'layout copies and casts',
  embedding: 'embedding',
  sampling: 'sampling',
  quantization: 'quantisation',
  graph: 'CUDA graph (opaque)',
  kernels: 'all kernels',
  other: 'kernels of no known class',
};
export const classWord = (name: string): string => classWords[name] ?? name;

const copyWords: Record<string, string> = {
  htod: 'host to device',
  dtoh: 'device to host',
  dtod: 'inside the device',
  ptop: 'between devices',
  hton: 'host to host',
  memset: 'memset',
};

const hostWords: Record<string, string> = {
  start_up: 'host, before any work of the device',
  loading_code: 'host, loading code onto the device (compiled, linked, or on first use)',
  shut_down: 'host, after the last work of the device',
  framework: 'host, inside operators of the framework',
  between_operators: 'host, between operators (Python, the program)',
  program: 'host, between launches (Python, framework)',
  runtime_dispatch: 'runtime, between operators',
  runtime_call: 'runtime, entering and leaving the call',
  sampling: 'host, choosing the next token',
  loop: 'host, the loop around the calls',
  dispatch: 'host, dispatching kernels (Python, framework, launch calls)',
  idle_cores: 'cores of the engine without work',
};

/** A bar's id in words, how far it can be trusted by its nature, and the capture that would sharpen it. */
export function barWords(
  id: string,
  { peaksMeasured, kind = null }: { peaksMeasured: boolean; kind?: WaterfallKind | null },
): Told {
  const [head = '', tail = ''] = id.split('.');
  const arithmetic = peaksMeasured
    ? 'model arithmetic over measured peaks'
    : 'model arithmetic over peaks of the data sheet, which no program reaches';
  const byRoof = peaksMeasured ? null : 'inferscope roofline';
  switch (head) {
    case 'roofline':
      if (kind === 'load') {
        return told(
          'roofline: bytes over the link to the host',
          'low',
          `bytes as recorded, over the link ${peaksMeasured ? 'as measured' : 'of the data sheet'}; the disk is not in it`,
          byRoof,
        );
      }
      return told('roofline: what the hardware allows', 'low', arithmetic, byRoof);
    case 'serial':
      return told('one operation after another', 'low', arithmetic, byRoof);
    case 'inefficiency':
      return tail === 'graph'
        ? told(
            'CUDA graph (opaque), above roofline',
            'low',
            'what runs in the graph was not recorded',
            withNsys,
          )
        : told(
            `${classWord(tail)} above roofline`,
            'low',
            `kernels as recorded, need by ${arithmetic}`,
            withNcu,
          );
    case 'nonessential':
      return told(
        `${classWord(tail)}, fusable or needless`,
        'medium',
        'exact kernel intervals; the class follows from the kernel names',
        null,
      );
    case 'kernels':
      return told(
        tail === 'graph' ? 'CUDA graph (opaque)' : `${classWord(tail)}, as measured`,
        tail === 'graph' ? 'low' : 'medium',
        tail === 'graph'
          ? 'what runs in the graph was not recorded'
          : 'exact kernel intervals; the class follows from the kernel names',
        tail === 'graph' ? withNsys : null,
      );
    case 'exposed_comm':
      return told('exposed communication', 'high', 'exact kernel intervals', null);
    case 'exposed_copy': {
      const [direction = '', memory] = tail.split('_');
      const what = copyWords[direction] ?? direction;
      const words = `exposed copies, ${what}${memory ? `, ${memory}` : ''}`;
      return told(words, 'high', 'exact copy intervals', null);
    }
    case 'launch_latency':
      return told(
        'from the launch call to the kernel',
        'medium',
        "up to the device's shortest launches in this capture",
        null,
      );
    case 'launch_overhead':
      return told('host inside launch calls', 'high', 'exact intervals of the API calls', null);
    case 'synchronization':
      return told('host waits in a synchronising call', 'high', 'exact intervals of the API calls', null);
    case 'device_dependency':
      return told(
        'launched work waits for other work',
        'medium',
        'what is left of a gap after the launch latency',
        null,
      );
    case 'host':
      if (tail === 'dispatch' || tail === 'idle_cores') {
        return told(
          hostWords[tail]!,
          'low',
          'time by the sampled CPU time of the process, a mean over the timed repeats',
          null,
        );
      }
      return told(
        hostWords[tail] ?? `host: ${tail.replaceAll('_', ' ')}`,
        tail === 'program' || tail === 'start_up' || tail === 'shut_down' ? 'medium' : 'medium',
        tail === 'program'
          ? 'exact intervals; what the thread did in them was not recorded'
          : tail === 'framework' || tail === 'between_operators'
            ? 'exact intervals, split by the operator whose launch ended the gap'
            : 'exact intervals',
        tail === 'program' ? withTorch : null,
      );
    case 'unattributed':
      return told('not explained', 'low', 'nothing in the session tells its cause', withNsys);
    case 'profiler_overhead':
      return told(
        'added by the profiler',
        'medium',
        'difference of two executions of the same workload',
        null,
      );
    default:
      return told(id.replaceAll('_', ' '), 'low', 'told by its source', null);
  }
}

const told = (
  label: string,
  confidence: Told['confidence'],
  confidence_why: string,
  sharpen: string | null,
): Told => ({ label, confidence, confidence_why, sharpen });
