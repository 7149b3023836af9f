import { barParts, type BarHead } from '../../model/bars.js';
import type { WaterfallBar, WaterfallKind } from '../../model/documents/explain.js';
import { barWords } from '../../vocabulary/bars.js';

type Trust = Pick<WaterfallBar, 'confidence' | 'confidence_why' | 'better_capture'>;

const withNcu = 'inferscope run --evaluator ncu -- <command>';
const withTorch = 'inferscope run --evaluator torch -- <command>';
const withNsys = 'inferscope run --evaluator nsys -- <command>';

interface Basis {
  peaksMeasured: boolean;
  kind?: WaterfallKind | null;
  /** Whether the classes are of operators on the CPU, which ncu does not see. */
  onCpu?: boolean;
}

/** Label of a bar, its confidence, and the capture that would make it more precise. */
export const describeBar = (id: string, basis: Basis): Trust & Pick<WaterfallBar, 'label'> => ({
  label: barWords(id).label,
  ...trustOf(id, basis),
});

const exactCalls = trust('high', 'exact intervals of the API calls');
const byNames = trust('medium', 'exact kernel intervals; the class follows from the kernel names');
const graphTrust = trust('low', 'what runs in the graph was not recorded', withNsys);

const trustByHead: Partial<Record<BarHead, Trust>> = {
  exposed_comm: trust('high', 'exact kernel intervals'),
  exposed_copy: trust('high', 'exact copy intervals'),
  launch_latency: trust('medium', "up to the device's shortest launches in this capture"),
  launch_overhead: exactCalls,
  synchronization: exactCalls,
  device_dependency: trust('medium', 'the remainder of a gap after the launch latency'),
  unattributed: trust('low', 'the session does not show its cause', withNsys),
  profiler_overhead: trust('medium', 'difference of two executions of the same workload'),
};

function trustOf(id: string, { peaksMeasured, kind = null, onCpu = false }: Basis): Trust {
  const { head, tail } = barParts(id);
  const arithmetic = peaksMeasured
    ? 'model arithmetic with measured peaks'
    : 'model arithmetic with data sheet peaks, which no program reaches';
  const roofCommand = peaksMeasured ? null : 'inferscope roofline';
  if (head === 'roofline' && kind === 'load') {
    const rate = peaksMeasured ? "link's measured rate" : "link's data sheet rate";
    return trust('low', `recorded bytes at the ${rate}; disk time is not included`, roofCommand);
  }
  if (head === 'roofline' || head === 'serial') return trust('low', arithmetic, roofCommand);
  if ((head === 'inefficiency' || head === 'kernels') && tail === 'graph') return graphTrust;
  if (head === 'inefficiency')
    return onCpu
      ? trust('low', `recorded operators; roofline: ${arithmetic}`)
      : trust('low', `recorded kernels; roofline: ${arithmetic}`, withNcu);
  if (head === 'nonessential' || head === 'kernels') return byNames;
  if (head === 'host') return trustOfHost(tail);
  return (head && trustByHead[head]) ?? trust('low', 'reported by its source');
}

function trustOfHost(tail: string): Trust {
  if (tail === 'dispatch' || tail === 'idle_cores')
    return trust('low', 'from the sampled CPU time of the process, a mean over the timed repeats');
  if (tail === 'program')
    return trust('medium', 'exact intervals; what the thread did in them was not recorded', withTorch);
  return trust(
    'medium',
    tail === 'framework' || tail === 'between_operators'
      ? 'exact intervals, split by the operator whose launch ended the gap'
      : 'exact intervals',
  );
}

function trust(
  confidence: Trust['confidence'],
  confidence_why: string,
  better_capture: string | null = null,
): Trust {
  return { confidence, confidence_why, better_capture };
}
