/**
 * Kernel text files that are re-read many times per second. Parsers scan for the required values instead of splitting
 * into fields: a status file has 60 lines and 5 of them matter.
 */

/** Ticks of /proc are USER_HZ, 100 per second on every Linux that Node supports (include/asm-generic/param.h). */
export const nsPerTick = 10_000_000;

export interface CoreTicks {
  /** The kernel's number of this core; offline cores leave holes. */
  id: number;
  busy: number;
  /** Time that the hypervisor gave to other guests while this core was runnable. */
  steal: number;
  total: number;
}

/**
 * `cpu0 6270 0 3378 88007 46 0 103 29 0 0`: user nice system idle iowait irq softirq steal guest guest_nice.
 * Guest time is inside user and nice already. Waiting for a disk is not being busy. Offline cores are absent.
 */
export function parseProcStat(text: string): CoreTicks[] {
  const cores: CoreTicks[] = [];
  for (const line of text.split('\n')) {
    if (!line.startsWith('cpu')) break;
    if (line[3] === ' ') continue;
    const [user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0] = line
      .slice(line.indexOf(' ') + 1)
      .split(' ')
      .map(Number);
    const busy = user + nice + system + irq + softirq;
    cores.push({ id: Number.parseInt(line.slice(3), 10), busy, steal, total: busy + idle + iowait + steal });
  }
  return cores;
}

export interface ProcessMemory {
  rssBytes: number;
  /** Null if the system does not distinguish the two (outside Linux). */
  anonymousBytes: number | null;
  /** File mappings and shared memory: rss − anonymous. */
  fileBytes: number | null;
  peakRssBytes: number;
}

/**
 * VmRSS, RssAnon and VmHWM of /proc/<pid>/status; null for a process without memory (exited, or a kernel thread).
 * The kernel counts pages per thread in batches, so values may lag by some 64 pages per thread (proc(5)).
 */
export function parseStatusMemory(text: string): ProcessMemory | null {
  const rss = kibField(text, 'VmRSS:');
  const anonymous = kibField(text, 'RssAnon:');
  const peak = kibField(text, 'VmHWM:');
  if (rss === null || anonymous === null || peak === null) return null;
  return {
    rssBytes: rss,
    anonymousBytes: anonymous,
    fileBytes: Math.max(0, rss - anonymous),
    peakRssBytes: peak,
  };
}

function kibField(text: string, name: string): number | null {
  const index = text.indexOf(`\n${name}`);
  if (index < 0) return null;
  const kib = Number.parseInt(text.slice(index + 1 + name.length, index + 40), 10);
  return Number.isNaN(kib) ? null : kib * 1024;
}

/** Microseconds in which at least one task waited (some), or all that could run did (full), since boot (Documentation/accounting/psi). */
export function parsePressure(text: string): { some: number | null; full: number | null } {
  const totalOf = (line: string) => {
    const total = new RegExp(`^${line} .*total=(\\d+)`, 'm').exec(text)?.[1];
    return total === undefined ? null : Number(total);
  };
  return { some: totalOf('some'), full: totalOf('full') };
}

/** Times of a thread since it started: on a core, and runnable but without one. Otherwise it sleeps. */
export interface ThreadTimes {
  cpuNs: number;
  delayNs: number;
}

/**
 * Reads `1046919544 1050566466 264` of /proc/<pid>/task/<tid>/schedstat: ns on a core, ns runnable but waiting for one, and number of runs
 * (Documentation/scheduler/sched-stats). Null if the kernel does not count (CONFIG_SCHED_INFO).
 */
export function parseSchedstat(text: string): ThreadTimes | null {
  const [cpuNs, delayNs] = text.trim().split(' ', 2).map(Number);
  // Without accounting the line is "0 0 0"; a thread that can be read has run.
  return cpuNs !== undefined && cpuNs > 0 && Number.isFinite(delayNs) ? { cpuNs, delayNs: delayNs! } : null;
}

interface PidStat {
  parentPid: number;
  /** utime + stime of itself plus that of every child it has waited for: conserved when a child exits. */
  ticks: number;
}

/** `1234 (name with ) in it) S 1 …`: fields are counted from the last parenthesis; 14-17 are the times (proc(5)). */
export function parsePidStat(text: string): PidStat | null {
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ', 16);
  const number = (field: number) => Number(fields[field - 3]);
  const ticks = number(14) + number(15) + number(16) + number(17);
  return fields.length >= 15 && Number.isFinite(ticks) ? { parentPid: number(4), ticks } : null;
}
