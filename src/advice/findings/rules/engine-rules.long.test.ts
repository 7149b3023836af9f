import { afterAll, expect, test } from 'vitest';
import type { SessionDatabase } from '../../../session/query.js';
import { testHome } from '../../../session/test-folder.js';
import { profileRows } from '../../../facts/test-rows.js';
import { sessionOf, tinyWorkload } from '../../../facts/test-session.js';
import { judgedStages, sessionWaterfalls } from '../../../facts/waterfall/session-waterfalls.js';
import type { StageWaterfall } from '../../../model/documents/explain.js';
import { findingContext, firedRules } from '../findings.js';
import { expectEvidence } from '../test-evidence.js';
import type { Rule } from '../rule.js';
import { idleCores } from './idle-cores.js';
import { operatorCopies } from './operator-copies.js';
import { runtimeOverhead } from './runtime-overhead.js';
import { weightsEachStep } from './weights-each-step.js';

const home = testHome();
const open: SessionDatabase[] = [];
afterAll(async () => {
  for (const database of open) await database.close();
});

/** Result of a rule for the hand-made profile with these decode bars in ms; the remainder is unattributed. */
async function judge(
  rule: Rule,
  {
    bars = {},
    busy = false,
    options = {},
    rows = profileRows(),
    hardware = {},
  }: {
    bars?: Record<string, number>;
    busy?: boolean;
    options?: Record<string, string>;
    rows?: ReturnType<typeof profileRows>;
    hardware?: Record<string, number>;
  } = {},
) {
  const workload = tinyWorkload({ engine: { name: 'onnxruntime', version: null, options } });
  const session = await sessionOf(home, rows, { workload });
  const database = await session.connect();
  open.push(database);
  const { stages } = await sessionWaterfalls(session, database);
  const changedStages = judgedStages(stages).map((stage): StageWaterfall => {
    if (stage.kind !== 'decode' || Object.keys(bars).length === 0) return stage;
    const [sample] = stage.bars;
    const sql =
      "SELECT cause AS what, count(*) AS count, 1.0 AS ms FROM gaps WHERE execution_id = 'profiled' GROUP BY 1 ORDER BY 1";
    return { ...stage, bars: Object.entries(bars).map(([id, ms]) => ({ ...sample!, id, ms, sql })) };
  });
  const baseContext = await findingContext(session, database, null, changedStages);
  const context = {
    ...baseContext,
    manifest: { ...baseContext.manifest, hardware: { ...baseContext.manifest.hardware, ...hardware } },
    machine: { ...baseContext.machine, busy },
  };
  const result = await firedRules(context, [rule]);
  const drafts = result.ruleFindings.map(({ draft }) => draft);
  await expectEvidence(session, drafts);
  return { drafts, withheld: result.withheld, outcome: result.rules[0]!.outcome };
}

const bars = { roofline: 5, 'host.runtime_call': 1.5, 'host.runtime_dispatch': 1, unattributed: 0.25 };

test('reports each bar of at least 5 % for time in the runtime outside of operators', async () => {
  const { drafts } = await judge(runtimeOverhead, { bars });
  const decode = drafts.filter(({ stage }) => stage === 'decode');
  expect(decode.map((draft) => [draft.bars, draft.at_stake_ms, draft.gain?.expected_ms])).toEqual([
    [['host.runtime_call'], 1.5, 1.125],
    [['host.runtime_dispatch'], 1, 0.75],
  ]);
  const small = { ...bars, 'host.runtime_call': 0.3, 'host.runtime_dispatch': 0.3 };
  const none = await judge(runtimeOverhead, { bars: small });
  expect(none.drafts.filter(({ stage }) => stage === 'decode')).toEqual([]);
});

test('withholds findings if the two passes differ, a part exceeds the whole, or the machine is busy', async () => {
  for (const [change, code] of [
    [{ bars: { ...bars, unattributed: 2 } }, 'passes_differ'],
    [{ bars: { ...bars, 'host.runtime_call': 9, 'host.runtime_dispatch': 0 } }, 'not_a_share'],
    [{ bars, busy: true }, 'machine_busy'],
  ] as const) {
    const { drafts, withheld } = await judge(runtimeOverhead, change);
    expect(drafts.filter(({ stage }) => stage === 'decode')).toEqual([]);
    const decodeWithheld = withheld.filter(({ stage }) => stage === 'decode');
    expect(new Set(decodeWithheld.map(({ reason }) => reason.code))).toEqual(new Set([code]));
  }
});

test('copies count as a growing KV cache only if the engine says so and they are Concat', async () => {
  const rows = profileRows();
  for (const row of rows.ops!) if (row.class === 'copy') row.op_type = 'Concat';
  const copying = { bars: { roofline: 5, 'nonessential.copy': 1 }, rows };
  const judgeDecode = async (change: Parameters<typeof judge>[1]) =>
    (await judge(operatorCopies, change)).drafts.find(({ stage }) => stage === 'decode');
  const grows = await judgeDecode({ ...copying, options: { kv_cache: 'grows' } });
  expect(grows).toMatchObject({
    at_stake_ms: 1,
    bars: ['nonessential.copy'],
    gain: { low_ms: 0.5, high_ms: 1 },
  });
  const inPlace = await judgeDecode({ ...copying, options: { kv_cache: 'in-place' } });
  expect(inPlace?.change.text).not.toBe(grows?.change.text);
  expect(await judgeDecode({ bars: { roofline: 7, 'nonessential.copy': 0.3 } })).toBeUndefined();
});

test('reports idle cores only if fewer threads than usable cores compute', async () => {
  const { workload } = (await sessionOf(home, profileRows())).manifest;
  const threads = workload!.threads!;
  for (const [cores, outcome] of [
    [threads + 3, 'fired'],
    [threads, 'not_fired'],
  ] as const)
    expect((await judge(idleCores, { hardware: { cpu_usable_cores: cores } })).outcome).toBe(outcome);
});

test('does not apply to sessions of other engines', async () => {
  const session = await sessionOf(home, {}, { kind: 'run', workload: null, roofline: null });
  const database = await session.connect();
  open.push(database);
  const context = await findingContext(session, database, null, []);
  for (const rule of [runtimeOverhead, operatorCopies, idleCores, weightsEachStep])
    expect(await rule.find(context)).toMatchObject({ outcome: 'not_applicable' });
});
