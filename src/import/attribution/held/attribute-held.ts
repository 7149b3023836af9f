import type { Issue } from '../../../model/document.js';
import { stageKinds } from '../../../model/record.js';
import type { HeldColumns, Workbench } from '../../../model/workbench.js';
import type { ImportContext } from '../../importer.js';
import { stageNameReader } from '../../stage-names.js';
import { attributions } from '../host-threads.js';
import { stageColumns as sweptColumns, sweepHost } from '../host-sweep.js';
import { attributionIssues, type DeviceCounts } from '../issues.js';
import type { OrphanCounts } from '../orphans.js';
import { isSynchronizing } from '../synchronizing-calls.js';
import { callBatches, lastCalls } from './calls.js';
import { correlate } from './correlate.js';
import { heldStages, type HeldStages } from './held-stages.js';
import { heldTables } from './held-tables.js';
import { sweepHeldDevices } from './held-devices.js';
import type { HeldTrace } from './held-trace.js';
import { labelShapes } from './kernel-labels.js';
import { type Launched, launched } from './launched.js';
import { attributionOf } from './places.js';
import { sharedInts } from './shared-arrays.js';
import { stageWork } from './stage-work.js';

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
  const places = sharedInts(calls.rows);
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
  const keep = <T extends keyof typeof heldTables>(
    table: T,
    rows: number,
    input: Parameters<(typeof heldTables)[T]>[0],
  ): Promise<void> => {
    const columns = heldTables[table] as (input: unknown) => HeldColumns;
    const { capture_id, execution_id, host } = context;
    return workbench.keepHeld({ table, rows, input, columns }, capture_id, { execution_id, host });
  };
  // The first table to be known is the largest: another thread encodes it while the devices are swept.
  await keep('api_calls', calls.rows, { calls, places, names });
  const related = correlate(calls, trace.kernels, trace.copies);
  const orphans: OrphanCounts = { orphans: 0, byTime: 0 };
  const kernels = await launched(stages, trace.kernels, related.kernels, places, orphans);
  const copies = await launched(stages, trace.copies, related.copies, places, orphans);
  const labels = labelShapes(trace.kernels, names);
  const times = sweepHeldDevices(host, calls, kernels, copies, labels.priority);
  proceed(0.5);
  const { gaps, launch, graphNode, exclusive } = times;
  await keep('kernels', kernels.events.rows, {
    activities: kernels,
    calls,
    exclusive: exclusive.kernels,
    names,
    labels,
  });
  await keep('gaps', gaps.count, { gaps, calls, kernels, copies, launch, graphNode });
  await keep('copies', copies.events.rows, { activities: copies, calls, exclusive: exclusive.copies, names });
  const work = stageWork(
    stages.column('parent_id'),
    [kernels, copies].map(({ events, place }) => ({
      events,
      stageOf: (row) => Math.floor(place[row]! / attributions.length),
    })),
  );
  await keep('stages', stages.rows, { swept: swept(stages), containers, work, names, kinds: stageKinds });
  await keep('ops', 0, undefined);
  const device = deviceCounts(kernels, copies);
  proceed(0.7);
  await workbench.written();
  return attributionIssues({ counts, orphans, shared: related.shared, times, device, stages: stages.rows });
}

function swept(stages: HeldStages): Record<(typeof sweptColumns)[number], Float64Array> {
  return Object.fromEntries(sweptColumns.map((name) => [name, stages.column(name)])) as Record<
    (typeof sweptColumns)[number],
    Float64Array
  >;
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
      else if (by < 0) counts.unstaged++;
    }
  }
  return counts;
}
