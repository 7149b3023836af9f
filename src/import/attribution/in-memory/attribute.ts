import type { Issue } from '../../../model/document.js';
import { stageKinds } from '../../../model/record.js';
import type { TableName } from '../../../model/tables.js';
import type { InMemoryColumns, InMemoryPart, InMemoryWriter, Workbench } from '../../../model/workbench.js';
import type { ImportContext } from '../../importer.js';
import { readStageNames } from '../../stage-names.js';
import { isLaunch, newImpossibleCounts } from '../impossible.js';
import { attributionIssues } from '../issues.js';
import type { OrphanCounts } from '../orphans.js';
import { stageLabels } from '../infer-ranges.js';
import { isSynchronizing } from '../../../model/synchronizing-calls.js';
import { correlate } from './correlate.js';
import { sweepHostInMemory } from './sweep-host.js';
import { withGraphNodes } from './graph-nodes.js';
import { inferInMemory, withInferredRanges } from './infer-stages.js';
import { columnParts } from './column-parts.js';
import { sweepDevicesInMemory } from './sweep-devices.js';
import type { InMemoryTrace } from './trace.js';
import { labelShapes } from './kernel-labels.js';
import { placeActivities } from './place-activities.js';
import { dropImpossible } from './drop-impossible.js';
import { sumStageWork } from './stage-work.js';
import type { InMemoryEvents } from './events.js';

/** Like `attribute`, with the same rules, for a capture in memory. Needs the table trace_names. */
export async function attributeInMemory(
  workbench: Workbench,
  context: ImportContext,
  trace: InMemoryTrace,
  proceed: (share: number) => void,
): Promise<Issue[]> {
  const { calls } = trace;
  const names = await readNamesByCode(workbench);
  const correlated = correlate(calls, trace.kernels, trace.copies);
  const impossible = newImpossibleCounts();
  const possible = {
    kernels: withGraphNodes(
      dropImpossible(trace.kernels, correlated.kernels, calls, impossible),
      calls,
      names,
    ),
    copies: withGraphNodes(dropImpossible(trace.copies, correlated.copies, calls, impossible), calls, names),
  };
  const labels = labelShapes(possible.kernels.events, names);
  const tables = {
    calls: await openTable(workbench, context, 'api_calls', calls.rows),
    kernels: await openTable(workbench, context, 'kernels', possible.kernels.events.rows),
    copies: await openTable(workbench, context, 'copies', possible.copies.events.rows),
  };
  // Another thread encodes the capture's own columns while this one attributes.
  tables.calls.add(columnPart('apiCalls', { calls, names }));
  tables.kernels.add(columnPart('kernels', { events: possible.kernels.events, names, labels }));
  tables.copies.add(columnPart('copies', { events: possible.copies.events, names }));

  const rangeNames = [...new Set(trace.ranges.shapes['name'])].map((code) => ({
    code,
    text: names[code] ?? '',
  }));
  const synchronizing = [...new Set(calls.shapes['name'])].filter(
    (code) => !Number.isNaN(code) && isSynchronizing(names[code]!),
  );
  const stageNameOf = readStageNames(rangeNames, context.stageNames);
  const inference = await inferInMemory(trace, names, stageNameOf, correlated.kernels);
  const { ranges, labels: inferredLabels } = withInferredRanges(trace.ranges, inference.ranges, names);
  const { host, counts, stages, places } = sweepHostInMemory(
    ranges,
    calls,
    stageLabels(stageNameOf, inference.training, inferredLabels),
    new Set(synchronizing),
  );
  proceed(0.25);
  tables.calls.add(columnPart('callStages', { places }));
  tables.calls.close();

  const orphans: OrphanCounts = { orphans: 0, byTime: 0 };
  const kernels = await placeActivities(stages, possible.kernels, places, orphans);
  const copies = await placeActivities(stages, possible.copies, places, orphans);
  for (const [table, activities] of [
    [tables.kernels, kernels],
    [tables.copies, copies],
  ] as const)
    table.add(columnPart('launches', { activities, calls }));

  const times = sweepDevicesInMemory(host, calls, kernels, copies, labels.priority);
  proceed(0.5);
  const { gaps, launch, graphNode, exclusive } = times;
  tables.kernels.add(columnPart('exclusive', { exclusive: exclusive.kernels, events: kernels.events }));
  tables.copies.add(columnPart('exclusive', { exclusive: exclusive.copies, events: copies.events }));
  const gapTable = await openTable(workbench, context, 'gaps', gaps.count);
  gapTable.add(columnPart('gaps', { gaps, calls, kernels, copies, launch, graphNode }));
  const { work, counts: device } = sumStageWork(stages.stageValues.parent_id, [kernels, copies]);
  const stageTable = await openTable(workbench, context, 'stages', stages.rows);
  stageTable.add(columnPart('stages', { stages, work, names, kinds: stageKinds }));
  const opsTable = await openTable(workbench, context, 'ops', 0);
  for (const table of [tables.kernels, tables.copies, gapTable, stageTable, opsTable]) table.close();
  proceed(0.7);
  await workbench.flush();
  return attributionIssues({
    counts,
    orphans,
    shared: correlated.shared,
    impossible,
    times,
    device,
    stages: stages.rows,
    launches: kernels.events.rows > 0 ? null : countLaunchCalls(calls, names),
    inference,
  });
}

function countLaunchCalls({ rows, shape, shapes }: InMemoryEvents, names: readonly string[]): number {
  const launches = Uint8Array.from(shapes['name'] ?? [], (name) => Number(isLaunch(names[name] ?? '')));
  let count = 0;
  for (let i = 0; i < rows; i++) count += launches[shape[i]!]!;
  return count;
}

function openTable(
  workbench: Workbench,
  { capture_id, execution_id, host }: ImportContext,
  table: TableName,
  rows: number,
): Promise<InMemoryWriter> {
  return workbench.saveInMemory(table, capture_id, rows, { execution_id, host });
}

function columnPart<N extends keyof typeof columnParts>(
  name: N,
  input: Parameters<(typeof columnParts)[N]>[0],
): InMemoryPart<unknown> {
  return { name, input, columns: columnParts[name] as (input: unknown) => InMemoryColumns };
}

async function readNamesByCode(workbench: Workbench): Promise<string[]> {
  const names: string[] = [];
  for (const { code, text } of await workbench.query<{ code: number; text: string }>(
    'SELECT code, text FROM trace_names',
  ))
    names[code] = text;
  return names;
}
