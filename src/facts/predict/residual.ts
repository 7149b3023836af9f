import type { OpClass } from '../../model/classes.js';
import type { Residual } from '../../model/documents/predict.js';
import type { ComposedStage } from './compose.js';
import type { MeasuredStageTime } from './measured.js';

type Cause = Residual['cause'];

const causeOfClass: Partial<Record<OpClass, Cause>> = {
  gemm: 'gemm',
  attention: 'attention',
  norm: 'unfused-elementwise',
  elementwise: 'unfused-elementwise',
  copy: 'unfused-elementwise',
  embedding: 'unfused-elementwise',
  moe_routing: 'unfused-elementwise',
  sampling: 'sampling',
};

/** Idle causes of a trace: the device waited for a launch, or for the program. */
const causeOfIdle: Record<string, Cause> = {
  launch_overhead: 'launch-bound',
  launch_latency: 'launch-bound',
  device_dependency: 'launch-bound',
  host: 'host',
  synchronization: 'host',
  'host.start_up': 'host',
  'host.shut_down': 'host',
};

/** Words for a longer and a shorter measurement than predicted. */
const textsOfCause: Record<Cause, readonly [more: string, less: string]> = {
  'launch-bound': [
    'the device waited for launches longer than predicted',
    'the device waited for launches less than predicted',
  ],
  'unfused-elementwise': tookLonger('norms, activations, rotations, expert routing and copies'),
  attention: tookLonger('attention'),
  gemm: tookLonger('GEMMs'),
  sampling: tookLonger('sampling'),
  host: [
    'the device waited for the program, or for its synchronization, longer than predicted',
    'the device waited for the program, or for its synchronization, less than predicted',
  ],
  unattributed: ['not distinguished by the recorded data', 'not distinguished by the recorded data'],
};

function tookLonger(what: string): [more: string, less: string] {
  return [`${what} took longer than predicted`, `${what} took less time than predicted`];
}

const causeOrder: readonly Cause[] = [
  'launch-bound',
  'host',
  'gemm',
  'attention',
  'unfused-elementwise',
  'sampling',
  'unattributed',
];

/**
 * Measured − predicted, by cause; the parts sum to it. Classes come from the kernels of a trace, idle time from its
 * causes. If only busy time is known, idle time is launch-bound and the remainder unattributed.
 */
export function residual(measured: MeasuredStageTime, predicted: ComposedStage): Residual[] {
  if (measured.ms.value === null) return [];
  const total = measured.ms.value - predicted.totalNs / 1e6;
  const parts = new Map<Cause, number>();
  const add = (cause: Cause, ms: number) => parts.set(cause, (parts.get(cause) ?? 0) + ms);
  const waitMs = (predicted.totalNs - predicted.deviceNs) / 1e6;
  if (measured.classesMs) {
    for (const [name, ms] of Object.entries(measured.classesMs)) {
      add(causeOfClass[name as OpClass] ?? 'unattributed', ms);
    }
    for (const { kernel, totalNs } of predicted.kernels) {
      add(causeOfClass[kernel.class] ?? 'unattributed', -totalNs / 1e6);
    }
  }
  if (measured.idleMs) {
    for (const [id, ms] of Object.entries(measured.idleMs)) add(causeOfIdle[id] ?? 'unattributed', ms);
    add(predicted.limitedBy === 'host' ? 'launch-bound' : 'host', -waitMs);
  } else if (measured.busyMs !== null) {
    add('launch-bound', measured.ms.value - measured.busyMs - waitMs);
  }
  const known = [...parts.values()].reduce((sum, ms) => sum + ms, 0);
  add('unattributed', total - known);
  return causeOrder.flatMap((cause) => {
    const ms = parts.get(cause) ?? 0;
    const [more, less] = textsOfCause[cause];
    return Math.abs(ms) < 1e-6 ? [] : [{ cause, ms, text: ms < 0 ? less : more }];
  });
}
