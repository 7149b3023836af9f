import { interrupted } from '../interrupted.js';
import type { Issue } from '../../model/document.js';
import type { Workbench } from '../../model/workbench.js';
import type { ImportContext } from '../importer.js';
import { readStageNames } from '../stage-names.js';
import { sweepDevices } from './devices.js';
import { stageColumns, sweepHost } from './host-sweep.js';
import { attributeInMemory } from './in-memory/attribute.js';
import type { InMemoryTrace } from './in-memory/trace.js';
import {
  dropBeforeLaunch,
  dropImpossibleDevices,
  dropRepeated,
  isGraphLaunch,
  isLaunch,
  newImpossibleCounts,
} from './impossible.js';
import { attributionIssues, countDeviceWork } from './issues.js';
import { callsSql, copiesSql, rowSaver, kernelsSql } from './attributed-tables.js';
import { saveGaps } from './save-gaps.js';
import { saveOps } from './save-ops.js';
import { saveStages } from './save-stages.js';
import { joinCalls, joinLaunches, sortByStart } from './launches.js';
import { createKernelNames } from './names.js';
import { classifyOperators } from './operator-classes.js';
import { attributeOrphans } from './orphans.js';
import { redactNames } from './redact-names.js';
import { rollUpOps, rollUpStages } from './roll-up.js';
import { stageLabels } from './infer-ranges.js';
import { addInferredRanges, inferFromTables } from './table-inference.js';
import { isSynchronizing } from '../../model/synchronizing-calls.js';
import { openRowWriter } from './row-writer.js';
import { createTextTable } from './texts.js';

/**
 * Turns the trace tables that a timeline reader filled (../trace-tables.ts) into the model's tables kernels, copies,
 * api_calls, ops, stages and gaps. Every event gets its stage, every kernel its launch, operator and class; each device is
 * swept for exclusive time and idle intervals. The trace tables must be tables, not views; those of API calls, kernels and
 * copies are dropped.
 */
export async function attribute(
  workbench: Workbench,
  context: ImportContext,
  trace: InMemoryTrace | null = null,
): Promise<{ issues: Issue[] }> {
  const proceed = (share: number) => {
    if (context.signal?.aborted) throw interrupted();
    context.progress?.(share);
  };
  await dropScratch(workbench);
  await redactNames(workbench, context, trace);
  const issues = trace
    ? await attributeInMemory(workbench, context, trace, proceed)
    : await attributeTables(workbench, context, proceed);
  await dropScratch(workbench);
  proceed(1);
  return { issues };
}

async function attributeTables(
  workbench: Workbench,
  context: ImportContext,
  proceed: (share: number) => void,
): Promise<Issue[]> {
  const save = rowSaver(workbench, context);
  await createTextTable(workbench, 'attr_call_names', 'SELECT DISTINCT name AS code FROM trace_api');
  await sortByStart(workbench, 'trace_api');
  const stageNameOf = await loadStageNames(workbench, context);
  const inference = await inferFromTables(workbench, stageNameOf);
  const labels = await addInferredRanges(workbench, inference.ranges);
  const classes = await classifyOperators(workbench);
  const { host, counts, folded, stages } = await sweepHost(workbench, {
    stage: stageLabels(stageNameOf, inference.training, labels),
    synchronizing: await readCallCodes(workbench, isSynchronizing),
    calls: workbench.scan('SELECT start_ns, dur_ns, pid, tid, name FROM trace_api'),
    kernelClasses: classes.kernelClasses,
    callPlaces: await openRowWriter(workbench, 'attr_calls', ['place', 'op_id', 'op_class']),
    stages: await openRowWriter(workbench, 'attr_stages', stageColumns),
  });
  proceed(0.3);
  await joinCalls(workbench);
  await save('api_calls', callsSql(await readApis(workbench)));
  proceed(0.45);

  const impossible = newImpossibleCounts();
  for (const table of ['trace_kernels', 'trace_copies'] as const) {
    impossible.impossibleDevice += await dropImpossibleDevices(workbench, table);
    if (await sortByStart(workbench, table)) impossible.repeated += await dropRepeated(workbench, table);
  }
  const shared = await joinLaunches(workbench, await readCallCodes(workbench, isGraphLaunch));
  await dropBeforeLaunch(workbench, impossible);
  const launches = await countLostLaunches(workbench);
  for (const table of ['attr_api', 'trace_kernels', 'trace_copies'])
    await workbench.run(`DROP TABLE ${table}`);
  const orphans = await attributeOrphans(workbench);
  const hasUniqueShortNames = await createKernelNames(workbench);
  proceed(0.6);
  const times = await sweepDevices(workbench, host);
  proceed(0.8);

  await saveGaps(workbench, context, times);
  await createTextTable(
    workbench,
    'attr_dims',
    'SELECT grid AS code FROM attr_kernels UNION SELECT "block" FROM attr_kernels',
  );
  await save('kernels', kernelsSql(times.overlapping, !hasUniqueShortNames));
  await createTextTable(
    workbench,
    'attr_copy_texts',
    'SELECT kind AS code FROM attr_copies UNION SELECT src_kind FROM attr_copies UNION SELECT dst_kind FROM attr_copies',
  );
  await save('copies', copiesSql(times.overlapping));
  proceed(0.9);
  await rollUpStages(workbench);
  await saveStages(workbench, context, folded);
  await rollUpOps(workbench);
  await saveOps(workbench, context, classes.classes);
  await workbench.flush();

  const device = await countDeviceWork(workbench);
  return attributionIssues({
    counts,
    orphans,
    shared,
    impossible,
    times,
    device,
    stages,
    launches,
    inference,
  });
}

/** API calls that launch kernels, in a capture without kernels; null if it has kernels. */
async function countLostLaunches(workbench: Workbench): Promise<number | null> {
  const [kernels] = await workbench.query<{ n: number }>('SELECT count(*) AS n FROM attr_kernels');
  if (kernels!.n > 0) return null;
  const calls = await workbench.query<{ text: string; n: number }>(
    'SELECT text, count(*) AS n FROM attr_api JOIN trace_names ON code = name GROUP BY text',
  );
  return calls.reduce((sum, { text, n }) => sum + (isLaunch(text) ? n : 0), 0);
}

async function readApis(workbench: Workbench) {
  return workbench.query<{ code: number; text: string }>(
    'SELECT code, text FROM trace_names SEMI JOIN (SELECT DISTINCT api FROM attr_api) a ON a.api = code',
  );
}

async function loadStageNames(workbench: Workbench, context: ImportContext) {
  const names = await workbench.query<{ code: number; text: string }>(
    'SELECT code, text FROM trace_names SEMI JOIN trace_ranges r ON r.name = code',
  );
  return readStageNames(names, context.stageNames);
}

async function readCallCodes(
  workbench: Workbench,
  isWanted: (name: string) => boolean,
): Promise<ReadonlySet<number>> {
  const names = await workbench.query<{ code: number; text: string }>(
    'SELECT code, text::VARCHAR AS text FROM attr_call_names',
  );
  return new Set(names.filter(({ text }) => isWanted(text)).map(({ code }) => code));
}

/** All tables and types that attribution creates start with attr_. */
async function dropScratch(workbench: Workbench): Promise<void> {
  for (const kind of ['table', 'type']) {
    const names = await workbench.query<{ name: string }>(
      `SELECT ${kind}_name AS name FROM duckdb_${kind}s() WHERE starts_with(${kind}_name, 'attr_')`,
    );
    for (const { name } of names) await workbench.run(`DROP ${kind} IF EXISTS ${name}`);
  }
}
