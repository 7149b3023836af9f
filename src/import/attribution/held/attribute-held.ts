import type { Issue } from '../../../model/document.js';
import type { Workbench } from '../../../model/workbench.js';
import type { ImportContext } from '../../importer.js';
import { stageNameReader } from '../../stage-names.js';
import { sweepHost } from '../host-sweep.js';
import { attributionIssues, type DeviceCounts } from '../issues.js';
import type { OrphanCounts } from '../orphans.js';
import { isSynchronizing } from '../synchronizing-calls.js';
import { attributionOf, callBatches, keepCalls, lastCalls } from './calls.js';
import { keepRows } from './columns.js';
import { correlate } from './correlate.js';
import { heldStages, keepStages } from './held-stages.js';
import { sweepHeldDevices } from './held-devices.js';
import type { HeldTrace } from './held-trace.js';
import { keepCopies, keepKernels } from './keep-activities.js';
import { keepGaps } from './keep-gaps.js';
import { labelShapes } from './kernel-labels.js';
import { type Launched, launched } from './launched.js';
import { stageWork } from './stage-work.js';
import { attributions } from '../host-threads.js';

/** As `attribute`, by the same rules, for a capture that is held. Needs the tables trace_ranges, trace_ops, trace_names. */
export async function attributeHeld(
  workbench: Workbench,
  context: ImportContext,
  trace: HeldTrace,
  proceed: (share: number) => void,
): Promise<Issue[]> {
  const { calls } = trace;
  const names = await namesByCode(workbench);
  await lastCalls(workbench, calls);
  const places = new Int32Array(calls.rows);
  let placed = 0;
  const read = stageNameReader(context.stageNames);
  const waits = [...new Set(calls.shapes['name'])].filter(
    (code) => !Number.isNaN(code) && isSynchronizing(names[code]!),
  );
  const stages = heldStages();
  const { host, counts, containers } = await sweepHost(workbench, {
    stage: cached((code) => read(names[code] ?? '')),
    synchronizing: new Set(waits),
    calls: callBatches(calls),
    placed: {
      add: (place) => {
        places[placed++] = place || 0;
      },
      close: () => {},
    },
    stages,
  });
  proceed(0.25);
  // The first table to be known is the largest: it is encoded while the devices are swept.
  await keepCalls(workbench, context, calls, places, names);
  const related = correlate(calls, trace.kernels, trace.copies);
  const orphans: OrphanCounts = { orphans: 0, byTime: 0 };
  const kernels = await launched(stages, trace.kernels, related.kernels, places, orphans);
  const copies = await launched(stages, trace.copies, related.copies, places, orphans);
  const labels = labelShapes(trace.kernels, names);
  const times = sweepHeldDevices(host, calls, kernels, copies, labels.priority);
  proceed(0.5);
  await keepGaps(workbench, context, calls, kernels, copies, times);
  proceed(0.7);
  await keepKernels(workbench, context, { calls, names }, kernels, times.exclusive.kernels, labels);
  await keepCopies(workbench, context, { calls, names }, copies, times.exclusive.copies);
  proceed(0.85);
  const work = stageWork(
    stages.column('parent_id'),
    [kernels, copies].map(({ events, place }) => ({
      events,
      stageOf: (row) => Math.floor(place[row]! / attributions.length),
    })),
  );
  await keepStages(workbench, context, stages, containers, work, names);
  await keepRows(workbench, context, 'ops', 0, {});
  await workbench.written();
  const device = deviceCounts(kernels, copies);
  return attributionIssues({ counts, orphans, shared: related.shared, times, device, stages: stages.rows });
}

async function namesByCode(workbench: Workbench): Promise<string[]> {
  const names: string[] = [];
  for (const { code, text } of await workbench.query<{ code: number; text: string }>(
    'SELECT code, text FROM trace_names',
  ))
    names[code] = text;
  return names;
}

function cached<T>(of: (code: number) => T): (code: number) => T {
  const known = new Map<number, T>();
  return (code) => {
    if (!known.has(code)) known.set(code, of(code));
    return known.get(code)!;
  };
}

function deviceCounts(kernels: Launched, copies: Launched): DeviceCounts {
  const counts: DeviceCounts = { activities: 0, opaque: 0, by_process: 0, by_thread: 0, unstaged: 0 };
  for (const { events, place } of [kernels, copies]) {
    const opaque = events.shapes['opaque_graph'];
    counts.activities += events.rows;
    for (let i = 0; i < events.rows; i++) {
      const by = attributionOf(place[i]!);
      if (opaque && opaque[events.shape[i]!] === 1) counts.opaque++;
      if (by === 1) counts.by_process++;
      else if (by === 2) counts.by_thread++;
      else if (Number.isNaN(by)) counts.unstaged++;
    }
  }
  return counts;
}
