import { expect, test } from 'vitest';
import type { MachineLoad } from '../model/documents/explain.js';
import type { Row } from '../model/tables.js';
import { testHome } from '../session/test-folder.js';
import { readMachineLoad } from './machine-load.js';
import { type Rows, sessionOf, tinyWorkload } from './test-session.js';

const home = testHome();

async function loadOf(rows: Rows, cores: number | null = 4, url?: string): Promise<MachineLoad> {
  const hardware: Record<string, number> = cores === null ? {} : { cpu_usable_cores: cores };
  const options = { url: url ?? '' };
  const server = tinyWorkload({ device: 'server', engine: { name: 'vLLM', version: null, options } });
  const session = await sessionOf(home, rows, {
    ...(url !== undefined && { workload: server }),
    manifest: { hardware },
  });
  const database = await session.connect();
  try {
    return await readMachineLoad(database, session.manifest);
  } finally {
    await database.close();
  }
}

const sample = (scope: string, metric: string, value: number, execution_id = 'clean'): Row<'telemetry'> => ({
  execution_id,
  pid: 1,
  t_ns: 0,
  scope,
  metric,
  value,
});

/** Three timed repeats of each launch and one of warm-up, ms. */
const launchRows = (medians: number[], point: string | null = null, spread = 3): Row<'iterations'>[] =>
  medians.flatMap((median, launch) =>
    [10 * median, median - 1, median, median + spread].map((ms, index) => ({
      iteration: 4 * launch + index,
      launch,
      warmup: index === 0,
      point,
      pid: launch,
      start_ns: 0,
      end_ns: ms * 1e6,
    })),
  );

const signsOf = ({ signs }: MachineLoad) => signs.map(({ id, value, reached }) => [id, value, reached]);

test('without samples and launches the load is unknown and the machine counts as idle', async () => {
  expect(await loadOf({})).toEqual({ busy: false, usable_cores: 4, signs: [] });
  // The share of cores is unknown without the number of cores.
  expect((await loadOf({ telemetry: [sample('other_processes', 'cores_busy', 3)] }, null)).busy).toBe(false);
});

test('other processes count from a quarter of the cores, in the clean execution if it was sampled', async () => {
  const telemetry = [
    sample('other_processes', 'cores_busy', 0.8),
    sample('other_processes', 'cores_busy', 1.2),
    sample('other_processes', 'cores_busy', 4, 'profiled'),
  ];
  expect(signsOf(await loadOf({ telemetry }))).toEqual([['other_processes', 1, true]]);
  expect((await loadOf({ telemetry }, 5)).busy).toBe(false);
});

test('steal time counts from 5 %', async () => {
  const loadWithSteal = (percent: number) =>
    loadOf({ telemetry: [sample('host', 'steal_percent', percent)] });
  expect(signsOf(await loadWithSteal(5))).toEqual([['steal', 5, true]]);
  expect((await loadWithSteal(4.9)).busy).toBe(false);
});

test('launch spread is the median over points and needs three repeats per launch', async () => {
  // (125 − 100) divided by the median launch, 110.
  const load = await loadOf({ iterations: launchRows([100, 110, 125]) });
  expect(load.signs).toMatchObject([{ id: 'launch_spread', reached: true, threshold: 0.2 }]);
  expect(load.signs[0]!.value).toBeCloseTo(25 / 110, 12);
  // One slow repeat per launch does not change the medians.
  expect((await loadOf({ iterations: launchRows([100, 102, 104], null, 500) })).busy).toBe(false);
  const points = [
    ...launchRows([100, 101], 'b1'),
    ...launchRows([100, 200], 'b2'),
    ...launchRows([50, 51], 'b4'),
  ];
  expect((await loadOf({ iterations: points })).busy).toBe(false);
  const two = launchRows([100, 200]).filter(({ iteration }) => iteration! % 4 < 3);
  expect((await loadOf({ iterations: two })).signs).toEqual([]);
});

test('a server on this machine is not another process', async () => {
  const telemetry = [sample('other_processes', 'cores_busy', 3)];
  expect((await loadOf({ telemetry }, 4, 'http://127.0.0.1:8000/v1')).busy).toBe(false);
  expect((await loadOf({ telemetry }, 4, 'http://gpu-box:8000/v1')).busy).toBe(true);
});
