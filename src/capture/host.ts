import { closeSync, openSync, readSync } from 'node:fs';
import os from 'node:os';
import { parseCpuInfo } from '../hardware/cpuinfo.js';
import { processTree } from './process-tree.js';
import {
  type CoreTicks,
  type ProcessMemory,
  nsPerTick,
  parsePidStat,
  parsePressure,
  parseProcStat,
  parseSchedstat,
  parseStatusMemory,
  type ThreadTimes,
} from './proc-text.js';
import type { IssueCode } from '../model/issue-codes.js';

/** Raw counters; the sampler computes differences. */
export interface HostReading {
  cores: CoreTicks[];
  /** MHz per core, in the order of `cores`; null if clocks cannot be read or no reading was due. */
  clockMhz: number[] | null;
  /** The watched process and its descendants; null when none is running or readable. */
  tree: { cpuNs: number; memory: ProcessMemory | null } | null;
  /** By process id of the tree. */
  mainThreads: ReadonlyMap<number, ThreadTimes>;
  /** VmHWM of each process of the tree, at the last reading; processes are added and never removed. */
  peaks: ReadonlyMap<number, number>;
  /**
   * Time that tasks of the whole machine waited, ns since boot, by metric of the table `telemetry`. Empty if the kernel does not count it.
   */
  pressureNs: Readonly<Record<string, number>>;
  /** CPU time of this process; 0 when it belongs to the tree. */
  ownCpuNs: number;
}

export interface HostReader {
  read(nowNs: number): HostReading;
  close(): void;
  /** Reasons why some values are not read, for the recording's issues. */
  notes: { code: IssueCode; text: string }[];
}

/** Interval of the search for new children; a shorter-lived one appears only in its parent's waited-for time. */
const treeScanNs = 250e6;
/** Limit for large trees (data loader workers): the first processes are the ones that launch kernels. */
const maxThreads = 64;
/**
 * Interval of reading clocks from /proc/cpuinfo, on machines without cpufreq: at 10 Hz (a little sooner, so that timer jitter does not skip
 * a sample). On CPUs with APERF/MPERF counters, kernels 4.14 to 5.17 sleep 10 ms in that read while they measure
 * (arch/x86/kernel/cpu/aperfmperf.c): there once per second.
 */
const cpuinfoScanNs = 90e6;
const measuringCpuinfoScanNs = 1e9;

/** Opens everything once; every reading re-reads the open files from their start. */
export function openLinuxHost(pid: number): HostReader {
  const stat = openText('/proc/stat', 256 * (os.cpus().length + 2));
  const processes = new Map<number, ProcessFiles>();
  const peaks = new Map<number, number>();
  const notes: HostReader['notes'] = [];
  const clocks = openClocks(parseProcStat(stat?.read() ?? ''), notes);
  const pressure = openPressure();
  let scannedNs = -Infinity;
  let ownInTree = false;

  function scan(nowNs: number): void {
    scannedNs = nowNs;
    const pids = new Set(processTree(pid));
    ownInTree = pids.has(process.pid);
    for (const [known, files] of processes) {
      if (pids.has(known)) continue;
      closeProcess(files);
      processes.delete(known);
    }
    for (const processId of pids) {
      if (processes.has(processId)) continue;
      const files = {
        stat: openText(`/proc/${processId}/stat`, 1024),
        status: openText(`/proc/${processId}/status`, 8192),
      };
      if (!files.stat || !files.status) continue;
      // The main thread: in Python and in engine workers this thread launches kernels.
      const schedstat =
        processes.size < maxThreads ? openText(`/proc/${processId}/task/${processId}/schedstat`, 128) : null;
      processes.set(processId, { stat: files.stat, status: files.status, schedstat });
    }
  }

  function readTree(): HostReading['tree'] {
    let ticks = 0;
    let alive = false;
    let memory: ProcessMemory | null = null;
    for (const [processId, files] of processes) {
      const times = parsePidStat(files.stat.read() ?? '');
      if (!times) continue;
      alive = true;
      ticks += times.ticks;
      const processMemory = parseStatusMemory(files.status.read() ?? '');
      if (!processMemory) continue;
      peaks.set(processId, processMemory.peakRssBytes);
      memory = memory ? addMemory(memory, processMemory) : processMemory;
    }
    return alive ? { cpuNs: ticks * nsPerTick, memory } : null;
  }

  function readMainThreads(): HostReading['mainThreads'] {
    const found = new Map<number, ThreadTimes>();
    for (const [processId, { schedstat }] of processes) {
      const times = parseSchedstat(schedstat?.read() ?? '');
      if (times) found.set(processId, times);
    }
    return found;
  }

  return {
    notes,
    read(nowNs) {
      if (nowNs - scannedNs >= treeScanNs) scan(nowNs);
      const cpuUsage = process.cpuUsage();
      return {
        cores: parseProcStat(stat?.read() ?? ''),
        clockMhz: clocks.read(nowNs),
        tree: readTree(),
        mainThreads: readMainThreads(),
        peaks,
        pressureNs: pressure.read(),
        ownCpuNs: ownInTree ? 0 : (cpuUsage.user + cpuUsage.system) * 1000,
      };
    },
    close() {
      stat?.close();
      clocks.close();
      pressure.close();
      for (const files of processes.values()) closeProcess(files);
      processes.clear();
    },
  };
}

function addMemory(a: ProcessMemory, b: ProcessMemory): ProcessMemory {
  return {
    rssBytes: a.rssBytes + b.rssBytes,
    anonymousBytes: (a.anonymousBytes ?? 0) + (b.anonymousBytes ?? 0),
    fileBytes: (a.fileBytes ?? 0) + (b.fileBytes ?? 0),
    peakRssBytes: a.peakRssBytes + b.peakRssBytes,
  };
}

interface ProcessFiles {
  stat: OpenText;
  status: OpenText;
  /** schedstat of its main thread; null if the kernel has none. */
  schedstat: OpenText | null;
}

function closeProcess({ stat, status, schedstat }: ProcessFiles): void {
  stat.close();
  status.close();
  schedstat?.close();
}

interface OpenText {
  /** Current text of the file; null once its process has exited. */
  read(): string | null;
  close(): void;
}

function openText(path: string, bytes: number): OpenText | null {
  let descriptor: number;
  try {
    descriptor = openSync(path, 'r');
  } catch {
    return null;
  }
  const buffer = Buffer.allocUnsafe(bytes);
  return {
    read() {
      try {
        return buffer.toString('latin1', 0, readSync(descriptor, buffer, 0, bytes, 0));
      } catch {
        return null;
      }
    },
    close: () => closeSync(descriptor),
  };
}

/** Pressure stall information: how long tasks wait for a core, for memory and for disks. */
function openPressure() {
  const files = ['cpu', 'memory', 'io'].flatMap((resource) => {
    const file = openText(`/proc/pressure/${resource}`, 512);
    return file ? [{ resource, file }] : [];
  });
  return {
    read() {
      const values: Record<string, number> = {};
      for (const { resource, file } of files) {
        const { some, full } = parsePressure(file.read() ?? '');
        if (some !== null) values[`${resource}_pressure_some_percent`] = 1000 * some;
        // For a whole machine the kernel does not count time in which all tasks wait for a core: the line is 0.
        if (full !== null && resource !== 'cpu') values[`${resource}_pressure_full_percent`] = 1000 * full;
      }
      return values;
    },
    close: () => files.forEach(({ file }) => file.close()),
  };
}

interface Clocks {
  read(nowNs: number): number[] | null;
  close(): void;
}

function openClocks(cores: CoreTicks[], notes: HostReader['notes']): Clocks {
  const files = cores
    .map(({ id }) => openText(`/sys/devices/system/cpu/cpu${id}/cpufreq/scaling_cur_freq`, 32))
    .filter((file) => file !== null);
  const close = () => files.forEach((file) => file.close());
  if (cores.length > 0 && files.length === cores.length) {
    return { close, read: () => files.map((file) => Number.parseInt(file.read() ?? '', 10) / 1000) }; // kHz
  }
  close();
  const cpuinfo = openText('/proc/cpuinfo', 4096 * Math.max(1, cores.length));
  const first = parseCpuInfo(cpuinfo?.read() ?? '');
  if (first.clockMhz.length === 0) {
    cpuinfo?.close();
    notes.push({
      code: 'clock_unreadable',
      text: 'This kernel reports no core clock (no cpufreq, none in cpuinfo).',
    });
    return { read: () => null, close: () => {} };
  }
  if (first.flags.has('hypervisor')) {
    notes.push({
      code: 'clock_nominal',
      text: 'clock_mhz is the nominal clock from /proc/cpuinfo: the hypervisor hides the real one.',
    });
  }
  const scanNs = first.flags.has('aperfmperf') ? measuringCpuinfoScanNs : cpuinfoScanNs;
  let readNs = -Infinity;
  return {
    read(nowNs) {
      if (nowNs - readNs < scanNs) return null;
      readNs = nowNs;
      // Not parseCpuInfo: the flags of 64 cores would take longer than the rest of a sample.
      return Array.from((cpuinfo?.read() ?? '').matchAll(/^cpu MHz\s*: ([\d.]+)/gm), (match) =>
        Number(match[1]),
      );
    },
    close: () => cpuinfo?.close(),
  };
}
