import os from 'node:os';
import type { HostReader } from './host.js';

/** Milliseconds of os.cpus() per /proc/stat tick. */
const msPerTick = 10;

/** Node's portable figures: core times, and the memory of this process. */
export function openPortableHost(pid: number): HostReader {
  const self = pid === process.pid;
  const notes: HostReader['notes'] = [
    { code: 'clock_unreadable', text: `Core clocks are not read on ${process.platform}.` },
    { code: 'children_unreadable', text: `Child processes are not followed on ${process.platform}.` },
  ];
  if (!self) {
    notes.push({
      code: 'process_unreadable',
      text: `CPU time and memory of process ${pid} cannot be read on ${process.platform}, only on Linux.`,
    });
  }
  const peaks = new Map<number, number>();
  return {
    notes,
    read() {
      const usage = process.cpuUsage();
      const cpuNs = (usage.user + usage.system) * 1000;
      const rssBytes = process.memoryUsage.rss();
      // libuv: ru_maxrss in KiB on every system
      const peakRssBytes = process.resourceUsage().maxRSS * 1024;
      if (self) peaks.set(pid, peakRssBytes);
      return {
        cores: os.cpus().map(({ times }, id) => {
          const busy = (times.user + times.nice + times.sys + times.irq) / msPerTick;
          return { id, busy, steal: 0, total: busy + times.idle / msPerTick };
        }),
        clockMhz: null,
        tree: self
          ? { cpuNs, memory: { rssBytes, anonymousBytes: null, fileBytes: null, peakRssBytes } }
          : null,
        mainThreads: new Map(),
        peaks,
        pressureNs: {},
        ownCpuNs: self ? 0 : cpuNs,
      };
    },
    close() {},
  };
}
