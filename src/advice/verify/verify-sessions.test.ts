import { expect, test } from 'vitest';
import { profileRows } from '../../facts/test-rows.js';
import { sessionOf, tinyWorkload } from '../../facts/test-session.js';
import { fixture, imported } from '../../facts/trace/test-import.js';
import { verifyDocumentSchema } from '../../model/documents/explain.js';
import { terminalView } from '../../render/terminal/view.js';
import { importSession } from '../../session/archive-import.js';
import { openSession, type Session } from '../../session/open.js';
import { testHome } from '../../session/test-folder.js';
import { verifyView } from '../../views/verify.js';
import { explainSession } from '../explain/explain.js';
import { verifySessions } from './verify.js';

const home = testHome();

const planted = async (name: string): Promise<Session> =>
  openSession((await importSession(`test/fixtures/diagnosis/${name}.tgz`, home)).id, home);

test('a planted fault and its fix on an H200: gone, with the expected gain', async () => {
  const [before, after] = [await planted('bank_conflicts-fault'), await planted('bank_conflicts-fixed')];
  const result = await verifySessions(before, after);
  expect(verifyDocumentSchema.parse(result)).toEqual(result);
  expect(result.data.changes[0]).toMatchObject({
    finding: 'bank_conflicts:decode',
    outcome: 'gone',
    as_expected: true,
  });
  // Interleaved timings without a profiler: 4.19 ms before, 0.229 ms after (timings.json).
  expect(Math.abs(result.data.changes[0]!.achieved_ms! - 3.96)).toBeLessThan(0.1);
  expect(Math.abs(result.data.changes[0]!.error!)).toBeLessThan(0.15);
  const text = terminalView(verifyView(result, await explainSession(before)), { width: 80 });
  expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
  expect(text).toContain('The achieved gain is within the expected interval');
  // Complete on several lines, and no number without its unit.
  expect(text).toMatch(/1 {2}Bank conflicts: 97 % of the shared-memory passes/);
});

test('results of other tools are compared by another command', async () => {
  const results = (name: string) =>
    imported(home, 'sglang-bench-serving', fixture(`benchmark-results-recorded/sglang-${name}.jsonl`));
  const [before, after] = [await results('oai'), await results('nostream')];
  const { data, issues } = await verifySessions(before, after);
  expect([data.stages, data.changes]).toEqual([[], []]);
  expect(issues.map(({ text }) => text)).toEqual([
    `Results of other tools are not verified by stage. Compare them with: inferscope bench compare ${before.id} ${after.id}`,
  ]);
});

test('rejects other models and devices, and reports other lengths', async () => {
  const runWith = (change: Parameters<typeof tinyWorkload>[0], gpu = 'NVIDIA H200') =>
    sessionOf(
      home,
      {},
      {
        kind: 'run',
        roofline: null,
        workload: tinyWorkload({ device: 'cuda:0', ...change }),
        manifest: { hardware: { gpu_name: gpu } },
      },
    );
  const base = await runWith({});
  const model = tinyWorkload().model!;
  const larger = await runWith({
    model: { ...model, name: 'larger', config: { ...model.config, num_hidden_layers: 4 } },
  });
  await expect(verifySessions(base, larger)).rejects.toMatchObject({
    code: 'E_USAGE',
    parts: { why: expect.stringContaining('different models, tiny and larger') },
  });
  await expect(verifySessions(base, await runWith({}, 'NVIDIA H100 80GB HBM3'))).rejects.toMatchObject({
    code: 'E_USAGE',
  });
  await expect(verifySessions(base, await runWith({ device: 'cpu' }))).rejects.toMatchObject({
    code: 'E_USAGE',
  });
  await expect(verifySessions(base, base)).rejects.toMatchObject({ code: 'E_USAGE' });
  // Clients on machines with other GPUs: the server may run on another machine.
  const served = (gpu: string) => runWith({ device: 'server' }, gpu);
  await expect(verifySessions(await served('NVIDIA A10'), await served('NVIDIA L4'))).resolves.toBeDefined();
  const result = await verifySessions(
    base,
    await runWith({ batch_size: 8, input_len: 9, model: { ...model, dtype: 'bfloat16' } }),
  );
  expect(result.issues.map(({ text }) => text)).toEqual([
    'Lengths differ: prompt tokens 4 and 9. Attention and KV cache grow with them.',
    'The sessions have no common stage or load with times in both.',
  ]);
  const both = await verifySessions(base, await runWith({ input_len: 9, output_len: 7 }));
  expect(both.issues[0]!.text).toMatch(/prompt tokens 4 and 9, output tokens \d+ and 7\. /);
  // Padding is a change of the same model.
  const padded = await runWith({ model: { ...model, config: { ...model.config, vocab_size: 520 } } });
  expect((await verifySessions(base, padded)).issues[0]!.text).toContain(
    'padding is assumed to be the change',
  );
});

test('operators on the CPU are as recorded on both sides if only one was timed without the profiler', async () => {
  const rows = profileRows();
  // Longer than the step without the profiler, so that they are scaled to it.
  const ops = rows.ops!.map((op) => ({ ...op, dur_ns: 3 * op.dur_ns! }));
  const stages = rows.stages!.filter(({ execution_id }) => execution_id !== 'clean');
  const timed = await sessionOf(home, { ...rows, ops }, { kind: 'run' });
  const profiled = await sessionOf(home, { ...rows, ops, stages }, { kind: 'run' });
  const explained = (await explainSession(timed)).data.stages.find(({ kind }) => kind === 'decode')!;
  expect(explained.bars.map(({ id }) => id)).toContain('profiler_overhead');
  for (const sides of [
    [timed, profiled],
    [profiled, timed],
  ] as const) {
    const decode = (await verifySessions(...sides)).data.stages.find(({ kind }) => kind === 'decode')!;
    expect(decode.profiled).toBe('both');
    expect(decode.bars.length).toBeGreaterThan(3);
    expect(decode.bars.map(({ id }) => id)).not.toContain('profiler_overhead');
    for (const { id, before_ms, after_ms } of decode.bars) expect([id, before_ms]).toEqual([id, after_ms]);
  }
});

test('steps of unknown kind, which both sessions show, are said not to be compared', async () => {
  const rows = profileRows();
  const stages = rows.stages!.map((stage) => ({ ...stage, kind: 'other', name: 'step', warmup: false }));
  const [before, after] = [
    await sessionOf(home, { ops: rows.ops!, stages }, { kind: 'run' }),
    await sessionOf(home, { ops: rows.ops!, stages }, { kind: 'run' }),
  ];
  expect((await explainSession(before)).data.stages.map(({ kind }) => kind)).toContain('other');
  const { data, issues } = await verifySessions(before, after);
  expect(data.stages).toEqual([]);
  expect(issues.map(({ text }) => text)).toContainEqual(expect.stringContaining('of unknown kind'));
});
