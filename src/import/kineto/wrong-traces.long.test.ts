import { expect, test } from 'vitest';
import { importWith } from '../attribution/test-import.js';
import { kinetoImporter } from './importer.js';
import { readTrace, writeTrace, tinyTrace } from './test-trace.js';

type Event = Record<string, unknown> & { args: Record<string, unknown> };
const changeTrace = (change: (events: Event[]) => void) => {
  const trace = readTrace(tinyTrace);
  change(trace.traceEvents as Event[]);
  return writeTrace(JSON.stringify(trace));
};
const withCategory = (list: Event[], cat: string) => list.filter((event) => event['cat'] === cat);

test('duplicate events, calls with one id, kernels an hour early, no device: each kernel counts once', async () => {
  const load = async (path: string) => {
    const { database, issues } = await importWith((target, context) =>
      kinetoImporter.load(path, target, context),
    );
    const [row] = await database.query<{ n: number; ns: number; withoutRegisters: number }>(
      'SELECT count(*)::INTEGER AS n, sum(dur_ns)::DOUBLE AS ns, count(*) FILTER (registers IS NULL)::INTEGER AS "withoutRegisters" FROM kernels',
    );
    await database.close();
    return { ...row, issues: Object.fromEntries(issues.map(({ code, count }) => [code, count])) };
  };
  const kernels = withCategory(readTrace(tinyTrace).traceEvents as Event[], 'kernel');
  const ns = kernels.reduce((sum, { dur }) => sum + Math.round((dur as number) * 1000), 0);
  const twice = await load(changeTrace((list) => void list.push(...list)));
  expect(twice).toMatchObject({ n: kernels.length, ns });
  expect(twice.issues['activities_repeated']).toBeGreaterThanOrEqual(kernels.length);

  const shared = await load(
    changeTrace((list) => {
      for (const { args } of list) if (args && 'correlation' in args) args['correlation'] = 1;
    }),
  );
  expect(shared).toMatchObject({ n: kernels.length, ns });
  expect(shared.issues['correlation_shared']).toBeGreaterThan(kernels.length);

  const early = await load(
    changeTrace((list) => {
      for (const kernel of withCategory(list, 'kernel').slice(0, 100))
        kernel['ts'] = (kernel['ts'] as number) - 3.6e9;
    }),
  );
  expect(early).toMatchObject({ n: kernels.length - 100, issues: { activities_before_launch: 100 } });

  const nowhere = await load(
    changeTrace((list) => {
      for (const [i, device] of [-1, 2 ** 40].entries())
        withCategory(list, 'kernel')[i]!.args['device'] = device;
      for (const name of ['registers per thread', 'shared memory'])
        withCategory(list, 'kernel')[2]!.args[name] = 2 ** 40;
    }),
  );
  expect(nowhere).toMatchObject({
    n: kernels.length - 2,
    withoutRegisters: 1,
    issues: { activities_without_device: 2 },
  });

  const late = await load(
    changeTrace((list) => {
      for (const kernel of withCategory(list, 'kernel').slice(0, 100))
        kernel['ts'] = (kernel['ts'] as number) + 3.6e9;
    }),
  );
  expect(late).toMatchObject({ n: kernels.length, issues: { activities_after_launch: 100 } });

  const negative = await load(
    changeTrace((list) => {
      for (const kernel of withCategory(list, 'kernel').slice(0, 100)) kernel['ts'] = -5;
    }),
  );
  expect(negative.issues['times_negative']).toBe(100);
});
