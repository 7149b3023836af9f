import type { Issue } from '../../model/document.js';
import { containsNo } from '../trace-file-error.js';
import type { TableSink } from '../../model/tables.js';
import type { ImportContext, ImportOutcome } from '../importer.js';
import type { IssueCode } from '../../model/issue-codes.js';

const mebibyte = 2 ** 20;

/** A metric of `telemetry`: its name (the same ones the NVML sampler writes) and its factor. */
export interface Metric {
  name: string;
  factor: number;
}

/** The only metric that goes to the table `memory` (kind used), like the NVML sampler's. */
export const memoryUsed = 'memory_used_bytes';

export const metric = (name: string, factor = 1): Metric => ({ name, factor });

/** An unknown metric keeps the source's name, with the unit appended: "fan.speed", "%" -> fan_speed_percent. */
export function metricOf(source: string, unit: string): Metric {
  const name = source.toLowerCase().replace(/\W+/g, '_');
  // nvidia-smi's MB is 2^20 bytes (its memory.total of an 80 GiB card is 81920 MiB, dmon's fb counts the same).
  if (/^mi?b$/i.test(unit)) return metric(`${name}_bytes`, mebibyte);
  const suffix = suffixes[unit.toLowerCase()] ?? unit.toLowerCase().replace(/\W+/g, '_');
  return metric(suffix === '' || name.endsWith(`_${suffix}`) ? name : `${name}_${suffix}`);
}

const suffixes: Record<string, string> = {
  '%': 'percent',
  w: 'w',
  mhz: 'mhz',
  c: 'c',
  'mb/s': 'mb_per_s',
  us: 'us',
  bool: '',
  errs: 'errors',
};

/** Markers of missing values. */
const missingValue = /^(?:-|\[?(?:N\/A|Not Supported|Not Available|Unknown Error|Requested.*|GPU.*)\]?|)$/i;

/** "79.46 W", "0 %", "0x0000000000000001", "Active", "P0". Null for "-", "[N/A]", "[Not Supported]" and texts. */
function sampleValue(text: string): number | null {
  if (/^0x[0-9a-f]+$/i.test(text)) return Number(text);
  if (/^(Not Active|Disabled|No)$/i.test(text)) return 0;
  if (/^(Active|Enabled|Yes)$/i.test(text)) return 1;
  const match = /^P?(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)(?:\s*[A-Za-z%/]+)?$/i.exec(text);
  return match ? Number(match[1]) : null;
}

/** Largest plausible values by the unit in a metric's name; a bit mask has 64 bits. */
const maxValues: [unit: RegExp, max: number][] = [
  [/_w$/, 1e6],
  [/_c$/, 1e3],
  [/_mhz$/, 1e6],
  [/_bytes$/, 2 ** 53],
  [/_mb_per_s$/, 1e9],
];

/** Utilizations end at 100; only temperatures may be negative. Power violations are shares of a time and may round up above 100 %. */
function isPossible(name: string, value: number): boolean {
  if (value < (name.endsWith('_c') ? -273.15 : 0)) return false;
  if (name.endsWith('utilization_percent')) return value <= 100;
  return value <= (maxValues.find(([unit]) => unit.test(name))?.[1] ?? 2 ** 64);
}

/** Wall clock of a local time, ns since the epoch; null if date or time has another form. The file has no time zone, so this machine's is used. */
export function localTimeNs(date: string, time: string): bigint | null {
  const day = /^(\d{4})\D?(\d\d)\D?(\d\d)$/.exec(date);
  const clock = /^(\d\d):(\d\d):(\d\d)(?:\.(\d{1,3}))?$/.exec(time);
  if (!day || !clock) return null;
  const [year, month, dayOfMonth] = day.slice(1).map(Number) as [number, number, number];
  const [hours, minutes, seconds] = clock.slice(1, 4).map(Number) as [number, number, number];
  const ms = Number((clock[4] ?? '').padEnd(3, '0'));
  return BigInt(new Date(year, month - 1, dayOfMonth, hours, minutes, seconds, ms).getTime()) * 1_000_000n;
}

export interface SampleTime {
  /** Wall clock, ns since the epoch; null if the log has no dates. */
  realtime_ns: bigint | null;
  /** Time since the first sample, by the log itself or by counting samples. */
  since_first_ns: number;
}

/** Writes samples, and reports missing parts at the end. */
class Samples {
  private readonly missing = new Map<string, number>();
  private readonly unreadable = new Map<string, number>();
  private readonly newest = new Map<number, number>();
  private outOfOrder = 0;
  private readonly present = new Set<string>();
  private readonly impossible = new Map<string, number>();
  private firstRealtime: bigint | null = null;
  rows = 0;

  constructor(
    private readonly sink: TableSink,
    private readonly context: ImportContext,
  ) {}

  /** Session time: by wall clock if log and session have one, else the log starts with the session. */
  sessionTime({ realtime_ns, since_first_ns }: SampleTime): number {
    const zero = this.context.zero.realtime_ns;
    if (realtime_ns === null) return since_first_ns;
    this.firstRealtime ??= realtime_ns;
    return Number(realtime_ns - (zero ?? this.firstRealtime));
  }

  /** A line of a log; the lines of a GPU are in time order. */
  checkOrder(t_ns: number, gpu: number): void {
    const newest = this.newest.get(gpu) ?? t_ns;
    if (t_ns < newest) this.outOfOrder++;
    this.newest.set(gpu, Math.max(newest, t_ns));
  }

  add(t_ns: number, gpu: number, { name, factor }: Metric, text: string): void {
    const value = sampleValue(text);
    const key = `gpu${gpu} ${name}`;
    if (value === null) {
      const counts = missingValue.test(text) ? this.missing : this.unreadable;
      counts.set(key, (counts.get(key) ?? 0) + 1);
      return;
    }
    if (!isPossible(name, value * factor)) {
      this.impossible.set(key, (this.impossible.get(key) ?? 0) + 1);
      return;
    }
    this.present.add(key);
    this.rows++;
    const { execution_id, capture_id, host } = this.context;
    const keys = { execution_id, capture_id, host, rank: 0 };
    if (name === memoryUsed) {
      const place = { device: gpu, t_ns, kind: 'used', bytes: value * factor };
      this.sink.append('memory', { ...keys, ...place, point: null, source: 'nvidia-smi' });
      return;
    }
    this.sink.append('telemetry', { ...keys, t_ns, scope: `gpu${gpu}`, metric: name, value: value * factor });
  }

  outcome(
    clock: ImportOutcome['clock'],
    { cutOff, hasDates }: { cutOff: number; hasDates: boolean },
  ): ImportOutcome {
    const issues: Issue[] = [];
    const info = (code: IssueCode, text: string, count?: number) =>
      issues.push({ code, severity: 'info', text, ...(count === undefined ? {} : { count }) });
    const all = new Set([...this.missing.keys(), ...this.unreadable.keys()]);
    const missingKeys = [...all].filter((key) => !this.present.has(key));
    if (missingKeys.length > 0) {
      info(
        'telemetry_missing',
        `nvidia-smi reported no values for: ${missingKeys.join(', ')}.`,
        missingKeys.length,
      );
    }
    const warnDropped = (code: IssueCode, what: string, counts: ReadonlyMap<string, number>) => {
      const count = [...counts.values()].reduce((sum, n) => sum + n, 0);
      const where = [...counts].map(([key, n]) => `${key} (${n})`).join(', ');
      if (count > 0)
        issues.push({ code, severity: 'warning', text: `${what} were dropped: ${where}.`, count });
    };
    warnDropped(
      'telemetry_impossible',
      'Impossible values (negative, over 100 %, or beyond any power, clock or size)',
      this.impossible,
    );
    // A column of names or modes has no numbers.
    const mixed = [...this.unreadable].filter(([key]) => this.present.has(key));
    warnDropped('telemetry_unreadable', 'Texts in columns of numbers', new Map(mixed));
    if (this.outOfOrder > 0) {
      issues.push({
        code: 'telemetry_out_of_order',
        severity: 'warning',
        text: `${this.outOfOrder} lines are older than an earlier line: logs were joined or duplicated, or the clock was set back. Their samples were kept.`,
        count: this.outOfOrder,
      });
    }
    if (hasDates) {
      info(
        'telemetry_local_time',
        'nvidia-smi writes local time without a time zone; the zone of this machine was used.',
      );
    }
    if (!hasDates) {
      issues.push({
        code: 'telemetry_undated',
        severity: 'warning',
        text: 'The log has no dates, so its first sample is put at the start of the session. Samples without a time are put one second apart. Record both: dmon -o DT, or --query-gpu with the field timestamp.',
      });
    }
    if (cutOff > 0) {
      issues.push({
        code: 'telemetry_cut_off',
        severity: 'warning',
        text: 'Lines with too few columns were skipped (the last line of a stopped recording).',
        count: cutOff,
      });
    }
    return { clock, issues };
  }
}

export const noSamples = containsNo(
  'nvidia-smi samples',
  'Record with: nvidia-smi dmon -o DT -s pucvmet > FILE, or nvidia-smi --query-gpu=timestamp,index,utilization.gpu,power.draw --format=csv -lms 200 > FILE',
);

/** One line of a log: one GPU at one time. */
export interface GpuSample {
  time: SampleTime;
  gpu: number;
  values: [Metric, string][];
}

type ReadSamples = (path: string, onCutOff: () => void, signal?: AbortSignal) => AsyncIterable<GpuSample>;

/**
 * Writes all samples of a log into the tables; the clock's error is its resolution if lines have a date.
 * @throws E_TRACE_FILE without samples
 */
export async function loadSamples(
  path: string,
  sink: TableSink,
  context: ImportContext,
  read: ReadSamples,
  clock: { name: string; resolution_ns: number },
): Promise<ImportOutcome> {
  const samples = new Samples(sink, context);
  let cutOff = 0;
  let hasDates = false;
  for await (const { time, gpu, values } of read(path, () => cutOff++, context.signal)) {
    hasDates ||= time.realtime_ns !== null;
    const t_ns = samples.sessionTime(time);
    samples.checkOrder(t_ns, gpu);
    for (const [name, text] of values) samples.add(t_ns, gpu, name, text);
  }
  if (samples.rows === 0) throw noSamples(path, 'There are no lines with values below its header.');
  const error_bound_ns = hasDates ? clock.resolution_ns : null;
  return samples.outcome({ ...clock, error_bound_ns }, { cutOff, hasDates });
}
