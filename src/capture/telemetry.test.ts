import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import os from 'node:os';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { openPortableHost } from './host-portable.js';
import { issuesAt } from '../vocabulary/sentence-template.js';
import { type HostSample, hostIssues, hostTelemetryRows, otherLoad } from './host-recording.js';
import {
  parsePidStat,
  parsePressure,
  parseProcStat,
  parseSchedstat,
  parseStatusMemory,
} from './proc-text.js';
import { type HostRecording, startHostSampler } from './telemetry.js';

const MiB = 2 ** 20;

describe('real texts of /proc', () => {
  // Firecracker VM, Linux 6.18, 2 cores
  const stat = `cpu  14123 0 7408 172691 1054 0 296 61 0 0
cpu0 6270 0 3378 88007 46 0 103 29 0 0
cpu1 7853 0 4030 84683 1008 0 192 32 0 0
intr 621809 0 0 0
ctxt 1517979
`;
  test('/proc/stat: waiting for a disk and stolen time are not busy', () => {
    expect(parseProcStat(stat)).toEqual([
      { id: 0, busy: 6270 + 3378 + 103, steal: 29, total: 6270 + 3378 + 88007 + 46 + 103 + 29 },
      { id: 1, busy: 7853 + 4030 + 192, steal: 32, total: 7853 + 4030 + 84683 + 1008 + 192 + 32 },
    ]);
    expect(parseProcStat('')).toEqual([]);
  });

  test('/proc/<pid>/status: resident, anonymous and peak memory', () => {
    const status =
      'Name:\tcat\nVmPeak:\t    3060 kB\nVmHWM:\t    1608 kB\nVmRSS:\t    1600 kB\nRssAnon:\t     112 kB\nRssFile:\t    1480 kB\nRssShmem:\t       8 kB\nThreads:\t1\n';
    expect(parseStatusMemory(status)).toEqual({
      rssBytes: 1600 * 1024,
      anonymousBytes: 112 * 1024,
      fileBytes: 1488 * 1024,
      peakRssBytes: 1608 * 1024,
    });
    expect(parseStatusMemory('Name:\tkthreadd\nThreads:\t1\n')).toBeNull();
  });

  test('/proc/pressure/memory, and a kernel that counts no full time', () => {
    const line = 'avg10=0.00 avg60=0.12 avg300=0.05 total=';
    expect(parsePressure(`some ${line}3172\nfull ${line}1999\n`)).toEqual({ some: 3172, full: 1999 });
    expect(parsePressure(`some ${line}3172\n`)).toEqual({ some: 3172, full: null });
    expect(parsePressure('')).toEqual({ some: null, full: null });
  });

  test('/proc/<pid>/stat of a process name with spaces and a parenthesis', () => {
    const line =
      '5878 (a) b (c) R 5864 5864 3975 0 -1 4194304 100 0 0 0 7 5 30 2 20 0 1 0 106846 3133440 390';
    expect(parsePidStat(line)).toEqual({ parentPid: 5864, ticks: 7 + 5 + 30 + 2 });
    expect(parsePidStat('')).toBeNull();
  });
});

describe('arithmetic of a recording, by hand', () => {
  // 2 s in one step: core 0 busy for 150 of 200 ticks, core 1 for 100; the process tree used 1.5 s, inferscope 0.2 s.
  const sample = (
    tNs: number,
    busy: [number, number],
    total: number,
    treeNs: number,
    ownNs: number,
  ): HostSample => ({
    tNs,
    reading: {
      cores: busy.map((ticks, id) => ({ id, busy: ticks, steal: 0, total })),
      clockMhz: null,
      tree: { cpuNs: treeNs, memory: null },
      peaks: new Map(),
      pressureNs: { cpu_pressure_some_percent: treeNs / 3 },
      mainThreads: new Map([[7, { cpuNs: treeNs / 3, delayNs: treeNs / 5 }]]),
      ownCpuNs: ownNs,
    },
  });
  const samples = [sample(0, [0, 0], 0, 0, 0), sample(2e9, [150, 100], 200, 1.5e9, 0.2e9)];

  test('computes utilization, busy cores, and the load of other processes', () => {
    const load = otherLoad(samples);
    // (1.5 + 1.0) s busy − 1.5 − 0.2 = 0.8 s in 2 s
    expect(load.mean).toBeCloseTo(0.4, 12);
    const rows = hostTelemetryRows(samples, load, { execution_id: 'e' });
    const value = (scope: string, metric: string) =>
      rows.find((row) => row.scope === scope && row.metric === metric)?.value;
    expect(value('cpu0', 'utilization_percent')).toBe(75);
    expect(value('cpu1', 'utilization_percent')).toBe(50);
    expect(value('host', 'utilization_percent')).toBe(62.5);
    expect(value('process', 'cores_busy')).toBe(0.75);
    expect(value('inferscope', 'cores_busy')).toBe(0.1);
    // 0.5 s of waiting in 2 s.
    expect(value('host', 'cpu_pressure_some_percent')).toBe(25);
    // 0.3 s in 2 s.
    expect(value('thread7', 'run_delay_percent')).toBeCloseTo(15, 12);
    // 0.5 s in 2 s; it sleeps for the other 1.2 s.
    expect(value('thread7', 'on_core_percent')).toBeCloseTo(25, 12);
    expect(rows.find(({ scope }) => scope === 'thread7')).toMatchObject({ pid: 7, execution_id: 'e' });
    expect(value('other_processes', 'cores_busy')).toBeCloseTo(0.4, 12);
    expect(value('cpu0', 'clock_mhz')).toBeUndefined();
  });

  test('a wait longer than the interval of samples is counted in the intervals before', () => {
    const delays = [0, 1e6, 1e6, 1e6, 121e6, 130e6];
    const delayed = delays.map((ns, index): HostSample => {
      const { reading } = sample(0, [0, 0], 0, 0, 0);
      return {
        tNs: index * 50e6,
        reading: { ...reading, mainThreads: new Map([[7, { cpuNs: 0, delayNs: ns }]]) },
      };
    });
    const rows = hostTelemetryRows(delayed, otherLoad(delayed), { execution_id: 'e' });
    const values = rows.filter(({ metric }) => metric === 'run_delay_percent').map(({ value }) => value);
    // 120 ms of waiting end in the fourth interval of 50 ms.
    expect(values).toEqual([2, 40, 100, 100, 18]);
  });

  test('reports a machine that is not idle, late samples, and costly samples', () => {
    const about = { costUs: { mean: 3000, max: 3000 }, periodNs: 50e6, pid: 1 };
    const issues = hostIssues(samples, { ...about, missedSamples: 8, others: otherLoad(samples) });
    expect(issues.map((issue) => issue.code)).toEqual(['machine_not_idle', 'late_samples', 'sampling_cost']);
    expect(issues[0]?.text).toContain('0.4 of 2 cores');
    expect(issues[1]).toMatchObject({ severity: 'warning', count: 8 });
    const quiet = { costUs: { mean: 100, max: 100 }, periodNs: 50e6, pid: 1, missedSamples: 0 };
    expect(hostIssues(samples, { ...quiet, others: { windows: [], mean: 0.05, max: 0.1 } })).toEqual([]);
    // Executions with and without a peak have one notice together.
    const busy = [0.4, 1.5].flatMap((max) =>
      hostIssues(samples, { ...quiet, others: { windows: [], mean: 0.4, max } }),
    );
    expect(issuesAt(busy.map((issue) => ({ issue, scope: null }))).map(({ text }) => text)).toEqual([
      'The machine was not idle: other processes used 0.4 of 2 cores (peak 0.4 to 1.5).',
    ]);
  });
});

/** A child that touches 200 MiB, reports, then burns one core; a grandchild holds 60 MiB more. */
const workload = `
const { spawn } = require('node:child_process');
const kept = Buffer.alloc(200 * 2 ** 20, 1);
const grandchild = spawn(process.execPath, ['-e', "const kept = Buffer.alloc(60 * 2 ** 20, 1); process.stdout.write('x'); setInterval(() => kept.length, 1000)"], { stdio: ['ignore', 'pipe', 'ignore'] });
grandchild.stdout.once('data', () => process.stdout.write('ready'));
process.stdin.once('data', () => { const end = Date.now() + 60000; (function burn() { const until = Date.now() + 50; while (Date.now() < until); if (Date.now() < end) setImmediate(burn); })(); });
process.on('SIGTERM', () => { grandchild.kill(); process.exit(kept.length > 0 ? 0 : 1); });
`;

const children: ReturnType<typeof spawn>[] = [];
afterEach(() => children.splice(0).forEach((child) => child.kill('SIGTERM')));

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe.runIf(process.platform === 'linux')('a real child process', () => {
  test('samples its memory, its CPU time and its descendants', async () => {
    const child = spawn(process.execPath, ['-e', workload], { stdio: ['pipe', 'pipe', 'inherit'] });
    children.push(child);
    await new Promise((resolve) => child.stdout!.once('data', resolve));
    const kernelTicks = () => {
      const fields = readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]!.split(' ');
      return Number(fields[11]) + Number(fields[12]);
    };
    const ticksBefore = kernelTicks();
    const startedNs = Number(process.hrtime.bigint());
    const sampler = startHostSampler({ pid: child.pid!, hz: 20, keys: { execution_id: 'x' } });
    child.stdin!.write('go');
    // Enough kernel ticks (10 ms each) to compare shares of a core, on a busy machine too.
    await vi.waitFor(() => expect(kernelTicks() - ticksBefore).toBeGreaterThan(60), { timeout: 60_000 });
    await wait(1000);
    const recording = sampler.stop();
    const spanS = (Number(process.hrtime.bigint()) - startedNs) / 1e9;
    const usedCores = (kernelTicks() - ticksBefore) / 100 / spanS;

    const rowsOf = (kind: string) => recording.memory.filter((row) => row.kind === kind);
    const rss = Math.max(...rowsOf('rss').map((row) => Number(row.bytes)));
    // Two Node processes (40 to 70 MiB each) and 260 MiB of filled buffers.
    expect(rss).toBeGreaterThan(320 * MiB);
    expect(rss).toBeLessThan(520 * MiB);
    expect(Math.max(...rowsOf('anonymous').map((row) => Number(row.bytes)))).toBeGreaterThan(260 * MiB);
    expect(rowsOf('peak_rss')).toHaveLength(2);
    const hwm = Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))![1]) * 1024;
    const peak = Number(rowsOf('peak_rss').find((row) => row.pid === child.pid)?.bytes);
    expect(Math.abs(peak - hwm)).toBeLessThan(8 * MiB);

    // The kernel's count of the child's time is the reference: on a busy machine it gets less than a core.
    const busy = meanOf(recording, 'process', 'cores_busy');
    expect(Math.abs(busy - usedCores)).toBeLessThan(0.15);
    expect(meanOf(recording, 'host', 'utilization_percent')).toBeGreaterThan(
      (busy / os.cpus().length) * 100 - 20,
    );

    const clocks = recording.telemetry.filter((row) => row.scope === 'cpu0' && row.metric === 'clock_mhz');
    if (!recording.issues.some((issue) => issue.code === 'clock_unreadable')) {
      expect(clocks.length).toBeGreaterThan(2);
      for (const row of clocks) expect(Number(row.value)).toBeGreaterThan(100);
    }

    for (const row of [...recording.telemetry, ...recording.memory]) {
      expect(Number(row.t_ns)).toBeGreaterThanOrEqual(startedNs);
      expect(row.execution_id).toBe('x');
    }
    // Missed samples are counted: together there are 20 per second, plus the first and the last.
    const due = recording.samples + recording.missedSamples;
    expect(Math.abs(due - 20 * spanS)).toBeLessThan(0.1 * due + 2);
  });

  test('a process that exits while it is watched leaves its rows and no error', async () => {
    const child = spawn(process.execPath, ['-e', 'console.log("up"); process.stdin.resume()']);
    const exited = new Promise((resolve) => child.once('exit', resolve));
    await new Promise((resolve) => child.stdout.once('data', resolve));
    const sampler = startHostSampler({ pid: child.pid!, hz: 40 });
    child.stdin.end();
    await exited;
    const recording = sampler.stop();
    expect(recording.memory.find((row) => row.kind === 'peak_rss')?.bytes).toBeGreaterThan(5 * MiB);
    expect(recording.issues.map((issue) => issue.code)).not.toContain('process_unreadable');
  });

  test('reports a process that never existed', async () => {
    const sampler = startHostSampler({ pid: 2 ** 22 + 1 });
    await wait(60);
    const recording = sampler.stop();
    expect(recording.memory).toEqual([]);
    expect(recording.issues.map((issue) => issue.code)).toContain('process_unreadable');
    expect(recording.telemetry.some((row) => row.scope === 'cpu0')).toBe(true);
  });

  test('an event loop that is blocked for 300 ms misses samples and reports that', async () => {
    const sampler = startHostSampler({ pid: process.pid, hz: 20 });
    await wait(60);
    const until = Date.now() + 300;
    while (Date.now() < until);
    await wait(60);
    const { missedSamples, issues } = sampler.stop();
    expect(missedSamples).toBeGreaterThanOrEqual(4);
    expect(issues.find((issue) => issue.code === 'late_samples')?.count).toBe(missedSamples);
  });
});

const pressureFile = '/proc/pressure/cpu';
test.runIf(existsSync(pressureFile))(
  'pressure agrees with the total that the kernel counts in that time',
  async () => {
    const total = () => parsePressure(readFileSync(pressureFile, 'utf8')).some! / 1e6;
    const before = total();
    const sampler = startHostSampler({ pid: process.pid, hz: 20 });
    await wait(1500);
    const { telemetry } = sampler.stop();
    const waited = total() - before;
    const rows = telemetry.filter(({ metric }) => metric === 'cpu_pressure_some_percent');
    const times = [...new Set(telemetry.map(({ t_ns }) => Number(t_ns)))].sort((a, b) => a - b);
    const sampledS = rows.reduce((sum, { t_ns, value }) => {
      const previousNs = times[times.indexOf(Number(t_ns)) - 1]!;
      return sum + ((Number(t_ns) - previousNs) / 1e9) * (Number(value) / 100);
    }, 0);
    // The recording is between the two readings. A late sample's value is capped at 100 %.
    expect(sampledS).toBeLessThanOrEqual(waited + 1e-3);
    expect(sampledS).toBeGreaterThanOrEqual(waited / 2 - 0.1);
  },
);

const readSchedstat = (pid: number) =>
  parseSchedstat(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8'));
test('reads a line of schedstat; null without accounting', () => {
  // A loop that shared its core for 2 s, Linux 6.18.
  expect(parseSchedstat('1046919544 1050566466 264\n')).toEqual({ cpuNs: 1046919544, delayNs: 1050566466 });
  expect(parseSchedstat('0 0 0\n')).toBeNull();
  expect(parseSchedstat('')).toBeNull();
});

test.runIf(existsSync('/proc/self/schedstat'))(
  'two programs on one core: each main thread waits as long as the kernel counts',
  async () => {
    const core = /^Cpus_allowed_list:\s*(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))![1]!;
    const loop = 'const until = Date.now() + 1500; while (Date.now() < until);';
    const pinned = () => spawn('taskset', ['-c', core, process.execPath, '-e', loop], { stdio: 'ignore' });
    const [watched, other] = [pinned(), pinned()];
    const sampler = startHostSampler({ pid: watched.pid!, hz: 20 });
    await wait(200);
    const before = readSchedstat(watched.pid!)!;
    await wait(800);
    const after = readSchedstat(watched.pid!)!;
    const { telemetry } = sampler.stop();
    watched.kill('SIGKILL');
    other.kill('SIGKILL');
    const rows = telemetry.filter(({ metric }) => metric === 'run_delay_percent');
    expect(new Set(rows.map(({ scope, pid }) => `${scope} ${pid}`))).toEqual(
      new Set([`thread${watched.pid} ${watched.pid}`]),
    );
    const times = [...new Set(telemetry.map(({ t_ns }) => t_ns!))].sort((a, b) => a - b);
    const sampledNs = rows.reduce(
      (sum, { t_ns, value }) => sum + ((t_ns! - times[times.indexOf(t_ns!) - 1]!) * value!) / 100,
      0,
    );
    // The recording includes the two readings, starts with the programs and stops shortly after the second reading.
    expect(sampledNs).toBeGreaterThanOrEqual(after.delayNs - before.delayNs);
    expect(sampledNs).toBeLessThanOrEqual(after.delayNs + 0.5e9);
  },
);

describe('values from Node on every system', () => {
  test('core times have one unit, and memory has no anonymous part', () => {
    const reader = openPortableHost(process.pid);
    const reading = reader.read(0);
    expect(reading.cores).toHaveLength(os.cpus().length);
    expect(reading.cores[0]!.total).toBeGreaterThan(reading.cores[0]!.busy);
    expect(reading.tree!.memory!.rssBytes / process.memoryUsage.rss()).toBeCloseTo(1, 0);
    expect(reading.tree!.memory!.peakRssBytes).toBeGreaterThanOrEqual(reading.tree!.memory!.rssBytes * 0.9);
    expect(reading.tree!.memory!.anonymousBytes).toBeNull();
  });

  test('the memory of another process is missing, with the reason', () => {
    const reader = openPortableHost(1);
    expect(reader.read(0).tree).toBeNull();
    expect(reader.notes.map((note) => note.code)).toContain('process_unreadable');
  });
});

/** Mean over time: on a busy machine the intervals between samples differ. */
function meanOf(recording: HostRecording, scope: string, metric: string): number {
  const rows = recording.telemetry.filter((row) => row.scope === scope && row.metric === metric);
  let area = 0;
  let span = 0;
  for (const [index, row] of rows.entries()) {
    const before = rows[index - 1];
    if (!before) continue;
    const step = Number(row.t_ns) - Number(before.t_ns);
    area += Number(row.value) * step;
    span += step;
  }
  return area / span;
}
