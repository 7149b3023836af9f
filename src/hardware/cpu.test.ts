import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import { dirname, join } from 'node:path';
import { execFileSync } from 'node:child_process';
import { afterAll, describe, expect, test } from 'vitest';
import { parseCacheSize } from './caches.js';
import { parseCpuMax } from './cgroup.js';
import { detectCpu } from './cpu.js';
import { instructionSets, parseCpuInfo } from './cpuinfo.js';
import { parseCpuList } from './kernel-files.js';

const folders: string[] = [];
afterAll(() => folders.forEach((folder) => rmSync(folder, { recursive: true, force: true })));

/** A recorded machine: its kernel files in a folder. */
function writeMachine(files: Record<string, string>): string {
  const root = mkdtempSync(join(os.tmpdir(), 'inferscope-cpu-'));
  folders.push(root);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}

const x86Block = (cpu: number, core: number) => `processor\t: ${cpu}
vendor_id\t: GenuineIntel
model name\t: Intel(R) Xeon(R) Platinum 8488C
physical id\t: 0
siblings\t: 4
core id\t\t: ${core}
cpu MHz\t\t: 2400.000
flags\t\t: fpu sse4_2 avx avx2 fma avx512f avx512_vnni avx512_bf16 amx_bf16 amx_tile amx_int8 hypervisor
`;

/** An Amazon m7i.xlarge: 2 cores with 2 threads each, in a container limited to 1.5 cores and 4 GiB (cgroup v2). */
const m7i = () =>
  writeMachine({
    'proc/cpuinfo': [x86Block(0, 0), x86Block(1, 1), x86Block(2, 0), x86Block(3, 1)].join('\n'),
    'proc/meminfo': 'MemTotal:       16074172 kB\nMemFree:         5074172 kB\n',
    'proc/self/status': 'Name:\tnode\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\n',
    'proc/self/cgroup': '0::/system.slice/docker-1.scope\n',
    'sys/fs/cgroup/system.slice/docker-1.scope/cpu.max': '150000 100000\n',
    'sys/fs/cgroup/system.slice/cpu.max': 'max 100000\n',
    'sys/fs/cgroup/system.slice/docker-1.scope/memory.max': '8589934592\n',
    'sys/fs/cgroup/system.slice/memory.max': '4294967296\n',
    'sys/devices/system/cpu/online': '0-3\n',
    'sys/devices/system/node/online': '0\n',
    'sys/class/dmi/id/sys_vendor': 'Amazon EC2\n',
    'sys/class/dmi/id/product_name': 'm7i.xlarge\n',
    ...Object.fromEntries(
      [0, 1, 2, 3].flatMap((cpu) => {
        const coreList = cpu % 2 === 0 ? '0,2' : '1,3';
        const index = (n: number, level: number, type: string, size: string, shared: string) => {
          const folder = `sys/devices/system/cpu/cpu${cpu}/cache/index${n}`;
          return [
            [`${folder}/level`, `${level}\n`],
            [`${folder}/type`, `${type}\n`],
            [`${folder}/size`, `${size}\n`],
            [`${folder}/shared_cpu_list`, `${shared}\n`],
          ];
        };
        return [
          ...index(0, 1, 'Data', '48K', coreList),
          ...index(1, 1, 'Instruction', '32K', coreList),
          ...index(2, 2, 'Unified', '2048K', coreList),
          ...index(3, 3, 'Unified', '107520K', '0-3'),
        ];
      }),
    ),
  });

describe('recorded machines', () => {
  test('Sapphire Rapids in a cgroup v2 container', () => {
    const cpu = detectCpu(m7i(), 'linux');
    expect(cpu).toMatchObject({
      model: 'Intel(R) Xeon(R) Platinum 8488C',
      logicalCores: 4,
      physicalCores: 2,
      sockets: 1,
      isa: { avx2: true, avx512: true, vnni: true, amx: true, neon: false, bf16: true },
      memoryTotalBytes: 16074172 * 1024,
      numaNodes: 1,
      quotaCores: 1.5,
      memoryLimitBytes: 4 * 2 ** 30,
      usableCores: 1.5,
      governor: null,
      virtualized: true,
      virtualizedBy: 'Amazon EC2 m7i.xlarge',
    });
    expect(cpu.caches).toEqual({
      l1d: { bytes: 48 * 1024, sharedBy: 2, instances: 2, totalBytes: 96 * 1024 },
      l2: { bytes: 2 ** 21, sharedBy: 2, instances: 2, totalBytes: 2 ** 22 },
      l3: { bytes: 105 * 2 ** 20, sharedBy: 4, instances: 1, totalBytes: 105 * 2 ** 20 },
    });
    expect(cpu.missing['governor']).toContain('hypervisor');
  });

  test('cgroup v1: quota from cfs files, "no limit" is not a limit', () => {
    const cpu = detectCpu(
      writeMachine({
        'proc/cpuinfo': x86Block(0, 0),
        'proc/self/cgroup': '4:memory:/job\n1:cpu,cpuacct:/job\n0::/\n',
        'sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us': '50000\n',
        'sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us': '100000\n',
        'sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us': '-1\n',
        'sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us': '100000\n',
        'sys/fs/cgroup/memory/job/memory.limit_in_bytes': '9223372036854771712\n',
      }),
      'linux',
    );
    expect(cpu.quotaCores).toBe(0.5);
    expect(cpu.usableCores).toBe(0.5);
    expect(cpu.memoryLimitBytes).toBeNull();
    expect(cpu.missing['memoryLimitBytes']).toBe('no memory limit is set');
  });

  test('Graviton 3: no model name, no core ids, missing caches with a reason', () => {
    const block = (cpu: number) => `processor\t: ${cpu}
BogoMIPS\t: 2100.00
Features\t: fp asimd evtstrm aes asimdhp asimddp sve i8mm bf16
CPU implementer\t: 0x41
CPU architecture: 8
CPU part\t: 0xd40
`;
    const cpu = detectCpu(
      writeMachine({
        'proc/cpuinfo': `${block(0)}\n${block(1)}`,
        'sys/devices/system/cpu/online': '0-1',
        'sys/devices/system/cpu/cpu0/topology/thread_siblings_list': '0',
        'sys/devices/system/cpu/cpu1/topology/thread_siblings_list': '1',
        'sys/devices/system/cpu/cpu0/topology/physical_package_id': '0',
        'sys/devices/system/cpu/cpu1/topology/physical_package_id': '0',
      }),
      'linux',
    );
    expect(cpu).toMatchObject({
      model: 'ARM Neoverse-V1',
      logicalCores: 2,
      physicalCores: 2,
      sockets: 1,
      isa: { avx2: false, neon: true, vnni: true, bf16: true },
      virtualized: null,
    });
    expect(cpu.caches.l3).toBeNull();
    expect(cpu.missing['l3']).toContain('cache');
  });
});

test('outside Linux: names and counts, with reasons for the other facts', () => {
  const cpu = detectCpu('/', 'darwin');
  expect(cpu.logicalCores).toBe(os.cpus().length);
  expect(cpu.memoryTotalBytes).toBe(os.totalmem());
  expect(cpu.caches.l2).toBeNull();
  expect(cpu.missing['l2']).toContain('darwin');
});

describe.runIf(process.platform === 'linux')('this machine compared with lscpu', () => {
  const cpu = detectCpu();
  test('every null has a reason', () => {
    for (const [field, value] of Object.entries({ ...cpu, ...cpu.caches })) {
      if (value === null && field !== 'virtualizedBy') expect(cpu.missing[field], field).toBeTruthy();
    }
  });

  test('counts, caches and sockets', (context) => {
    let report: { field: string; data: string }[];
    try {
      report = (
        JSON.parse(
          execFileSync('lscpu', ['--json', '--bytes'], {
            encoding: 'utf8',
            env: { ...process.env, LC_ALL: 'C' },
          }),
        ) as {
          lscpu: { field: string; data: string }[];
        }
      ).lscpu;
    } catch {
      context.skip('lscpu is not installed');
      return;
    }
    const lscpu = (field: string) => report.find((row) => row.field === `${field}:`)?.data;
    expect(cpu.logicalCores).toBe(Number(lscpu('CPU(s)')));
    expect(cpu.sockets).toBe(Number(lscpu('Socket(s)')));
    expect(cpu.physicalCores).toBe(Number(lscpu('Core(s) per socket')) * Number(lscpu('Socket(s)')));
    expect(cpu.model).toBe(lscpu('Model name'));
    for (const [field, cache] of [
      ['L1d cache', cpu.caches.l1d],
      ['L2 cache', cpu.caches.l2],
      ['L3 cache', cpu.caches.l3],
    ] as const) {
      // lscpu prints "65536 (2 instances)"
      if (lscpu(field)) expect(cache?.totalBytes).toBe(Number.parseInt(lscpu(field)!, 10));
    }
  });
});

test('parses CPU lists, cache sizes, quotas and flags', () => {
  expect(parseCpuList('0-3,8,10-11')).toEqual([0, 1, 2, 3, 8, 10, 11]);
  expect(parseCpuList('')).toEqual([]);
  expect(parseCacheSize('105M')).toBe(105 * 2 ** 20);
  expect(parseCacheSize('32K')).toBe(32768);
  expect(parseCacheSize('lots')).toBeNull();
  expect(parseCpuMax('max 100000')).toBeNull();
  expect(parseCpuMax('25000 100000')).toBe(0.25);
  expect(parseCpuInfo('').logicalCores).toBe(0);
  expect(instructionSets(new Set(['avx_vnni', 'avx2']))).toMatchObject({ vnni: true, avx512: false });
});
