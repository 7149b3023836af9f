import type { Issue } from '../../model/document.js';
import type { Batch } from './batch.js';
import { categoryKind, categoryKinds } from './categories.js';
import { copyBytesImpossible, namesMissing, trailingBytes } from '../capture-issues.js';
import type { FilledTables } from './fill.js';
import type { IssueCode } from '../../model/issue-codes.js';

/** Counts of what reading lost, doubted or repaired. */
export interface Losses {
  categories: Map<string, number>;
  repaired: number;
  damaged: number;
  untimed: number;
  negative: number;
  oversized: number;
  oddShapes: number;
  /** Text after the end of the trace, which is not read. */
  trailingBytes: number;
  allocationsOutside: number;
  /** Devices with impossible properties. */
  oddDevices: number;
  /** Lists of traceEvents beyond the first. */
  eventLists: number;
  add(batch: Batch): void;
}

export function noLosses(): Losses {
  const losses: Losses = {
    categories: new Map(),
    repaired: 0,
    damaged: 0,
    untimed: 0,
    negative: 0,
    oversized: 0,
    oddShapes: 0,
    trailingBytes: 0,
    allocationsOutside: 0,
    oddDevices: 0,
    eventLists: 0,
    add({ categories, repaired, damaged, untimed, negative, oversized, oddShapes }) {
      losses.oversized += oversized;
      losses.oddShapes += oddShapes;
      losses.repaired += repaired;
      losses.damaged += damaged;
      losses.untimed += untimed;
      losses.negative += negative;
      for (const [name, count] of Object.entries(categories)) {
        losses.categories.set(name, (losses.categories.get(name) ?? 0) + count);
      }
    },
  };
  return losses;
}

/** Kernel events read, usable or not. */
export function countKernelEvents({ categories }: Losses): number {
  const kernels = [...categories].filter(([name]) => categoryKind(name) === categoryKinds.kernel);
  return kernels.reduce((sum, [, count]) => sum + count, 0);
}

export function lossIssues(losses: Losses, { rows, sharedIds, unnamed }: FilledTables): Issue[] {
  const issues: Issue[] = [];
  const warn = (code: IssueCode, count: number, text: string, severity: Issue['severity'] = 'warning') => {
    if (count > 0) issues.push({ code, severity, text, count });
  };
  warn('events_damaged', losses.damaged, 'Events that are not valid JSON were skipped.');
  warn('events_untimed', losses.untimed, 'Events without a valid start or end were dropped.');
  warn(
    'times_negative',
    losses.negative,
    'Events start before the zero of their clock; no profiler writes such times, so their order may be wrong.',
  );
  warn(
    'texts_repaired',
    losses.repaired,
    'Names with control characters or invalid JSON escapes were read literally.',
    'info',
  );
  issues.push(...namesMissing(unnamed), ...copyBytesImpossible(losses.oversized));
  warn('shapes_impossible', losses.oddShapes, 'Operator shapes with invalid dimensions were dropped.');
  warn(
    'device_properties_impossible',
    losses.oddDevices,
    'Devices have no name or an impossible size, which was ignored.',
  );
  warn(
    'event_lists_repeated',
    losses.eventLists,
    'The file has more than one traceEvents list; all were read as one trace. It may contain two captures.',
  );
  if (losses.trailingBytes > 0) issues.push(trailingBytes(losses.trailingBytes));
  const unknown = [...losses.categories].filter(([name]) => categoryKind(name) === categoryKinds.unknown);
  warn(
    'categories_unknown',
    unknown.reduce((sum, [, count]) => sum + count, 0),
    `Events of unsupported categories were skipped: ${unknown
      .slice(0, 5)
      .map(([name]) => JSON.stringify(name.slice(0, 40)))
      .join(', ')}.`,
    'info',
  );
  warn(
    'op_ids_shared',
    sharedIds,
    'Operators share an External id with another one; their kernels were assigned to the first.',
  );
  warn(
    'allocations_outside_ops',
    losses.allocationsOutside,
    'Device memory was allocated outside every recorded operator.',
    'info',
  );
  if (rows.kernels + rows.copies === 0) {
    const text = 'The trace has no device activity: the profiler recorded only the host.';
    issues.push({ code: 'no_device_activity', severity: 'warning', text });
  }
  return issues;
}
