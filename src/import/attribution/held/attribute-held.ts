import type { Issue } from '../../../model/document.js';
import { stageKinds } from '../../../model/record.js';
import type { TableName } from '../../../model/tables.js';
import type { HeldColumns, HeldPart, HeldWriter, Workbench } from '../../../model/workbench.js';
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
import { heldParts } from './held-parts.js';
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
  const labels = labelShapes(trace.kernels, names);
  const tables = {
    calls: await open(workbench, context, 'api_calls', calls.rows),
    kernels: await open(workbench, context, 'kernels', trace.kernels.rows),
    copies: await open(workbench, context, 'copies', trace.copies.rows),
  };
  // Another thread encodes what the capture says while this one finds what belongs to what.
  tables.calls.add(part('apiCalls', { calls, names }));
  tables.kernels.add(part('kernels', { events: trace.kernels, names, labels }));
  tables.copies.add(part('copies', { events: trace.copies, names }));

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
  tables.calls.add(part('callStages', { places }));
  tables.calls.close();

  const related = correlate(calls, trace.kernels, trace.copies);
  const orphans: OrphanCounts = { orphans: 0, byTime: 0 };
  const kernels = await launched(stages, trace.kernels, related.kernels, places, orphans);
  const copies = await launched(stages, trace.copies, related.copies, places, orphans);
  for (const [table, activities] of [
    [tables.kernels, kernels],
    [tables.copies, copies],
  ] as const)
    table.add(part('launches', { activities, calls }));

  const times = sweepHeldDevices(host, calls, kernels, copies, labels.priority);
  proceed(0.5);
  const { gaps, launch, graphNode, exclusive } = times;
  tables.kernels.add(part('exclusive', { exclusive: exclusive.kernels, events: kernels.events }));
  tables.copies.add(part('exclusive', { exclusive: exclusive.copies, events: copies.events }));
  const gapTable = await open(workbench, context, 'gaps', gaps.count);
  gapTable.add(part('gaps', { gaps, calls, kernels, copies, launch, graphNode }));
  const work = stageWork(
    stages.column('parent_id'),
    [kernels, copies].map(({ events, place }) => ({
      events,
      stageOf: (row) => Math.floor(place[row]! / attributions.length),
    })),
  );
  const stageTable = await open(workbench, context, 'stages', stages.rows);
  stageTable.add(part('stages', { swept: swept(stages), containers, work, names, kinds: stageKinds }));
  const none = await open(workbench, context, 'ops', 0);
  for (const table of [tables.kernels, tables.copies, gapTable, stageTable, none]) table.close();
  const device = deviceCounts(kernels, copies);
  proceed(0.7);
  await workbench.written();
  return attributionIssues({ counts, orphans, shared: related.shared, times, device, stages: stages.rows });
}

function open(
  workbench: Workbench,
  { capture_id, execution_id, host }: ImportContext,
  table: TableName,
  rows: number,
): Promise<HeldWriter> {
  return workbench.keepHeld(table, capture_id, rows, { execution_id, host });
}

function part<N extends keyof typeof heldParts>(
  name: N,
  input: Parameters<(typeof heldParts)[N]>[0],
): HeldPart<unknown> {
  return { name, input, columns: heldParts[name] as (input: unknown) => HeldColumns };
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
