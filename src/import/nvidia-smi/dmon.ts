import { readLines } from '../interrupted.js';
import type { ImportTarget } from '../../model/workbench.js';
import type { CaptureFacts, ImportContext, Importer, ImportOutcome } from '../importer.js';
import {
  type GpuSample,
  loadSamples,
  localTimeNs,
  memoryUsed,
  type Metric,
  metric,
  metricOf,
  noSamples,
  type SampleTime,
} from './samples.js';

/**
 * `nvidia-smi dmon`, with any -s set, with or without -o D, T: whitespace-separated columns under two header lines that repeat
 * on every page, "-" for missing values, one line per GPU and sample:
 * ```
 * #Date        Time         gpu    pwr  gtemp  mtemp     sm    mem …
 * #YYYYMMDD    HH:MM:SS     Idx      W      C      C      %      % …
 *  20261121    04:55:39       0     79     31     35      0      0 …
 * ```
 */
export const nvidiaSmiDmonImporter = {
  name: 'nvidia-smi-dmon',
  sniff: (firstBytes) => /^#.*\bgpu\b.*\n#.*\bIdx\b/m.test(firstBytes),
  async facts(path): Promise<CaptureFacts> {
    let zero: bigint | null = null;
    for await (const { time } of readSamples(path, () => {})) {
      zero = time.realtime_ns;
      break;
    }
    return {
      tool: { name: 'nvidia-smi', version: null },
      realtime_zero_ns: zero,
      command: null,
      hardware: {},
      software: {},
      purpose: 'telemetry',
    };
  },
  load: (path, { sink }: Pick<ImportTarget, 'sink'>, context: ImportContext): Promise<ImportOutcome> =>
    loadSamples(path, sink, context, readSamples, {
      name: 'CLOCK_REALTIME, whole seconds',
      resolution_ns: 1e9,
    }),
} satisfies Importer;

async function* readSamples(
  path: string,
  onCutOff: () => void,
  signal?: AbortSignal,
): AsyncGenerator<GpuSample> {
  let names: string[] = [];
  let metrics: (Metric | null)[] = [];
  let header = false;
  let round = -1;
  let gpusInRound = new Set<number>();
  const clock = dayClock();
  for await (const line of readLines(path, signal)) {
    const fields = line
      .replace(/^#/, '')
      .trim()
      .split(/[\s,]+/);
    if (line.startsWith('#')) {
      if (fields.includes('gpu')) names = fields.map((name) => name.toLowerCase());
      else metrics = names.map((name, i) => columnMetric(name, fields[i] ?? ''));
      header = true;
      continue;
    }
    if (!header || fields[0] === '') continue;
    const gpu = Number(fields[names.indexOf('gpu')]);
    if (fields.length !== names.length || !Number.isSafeInteger(gpu)) {
      onCutOff();
      continue;
    }
    if (round < 0 || gpusInRound.has(gpu)) {
      round++;
      gpusInRound = new Set();
    }
    gpusInRound.add(gpu);
    const field = (name: string) => fields[names.indexOf(name)] ?? '';
    const time = clock(field('date'), field('time'), round);
    const values = metrics.flatMap((name, i): [Metric, string][] => (name ? [[name, fields[i]!]] : []));
    yield { time, gpu, values };
  }
  if (!header) throw noSamples(path, 'It has no header line that starts with "#" and names gpu.');
}

/** Dates if the log has them; with only -o T the time since the first line, also over midnight. */
function dayClock(): (date: string, time: string, round: number) => SampleTime {
  let first: bigint | null = null;
  let last: bigint | null = null;
  let days = 0n;
  return (date, time, round) => {
    const realtimeNs = localTimeNs(date, time);
    if (realtimeNs !== null) {
      first ??= realtimeNs;
      return { realtime_ns: realtimeNs, since_first_ns: Number(realtimeNs - first) };
    }
    let timeOfDayNs = localTimeNs('20000101', time);
    if (timeOfDayNs === null) return { realtime_ns: null, since_first_ns: round * 1e9 };
    if (last !== null && timeOfDayNs < last) days++;
    last = timeOfDayNs;
    timeOfDayNs += days * 86_400_000_000_000n;
    first ??= timeOfDayNs;
    return { realtime_ns: null, since_first_ns: Number(timeOfDayNs - first) };
  };
}

function columnMetric(name: string, unit: string): Metric | null {
  if (name === 'gpu' || name === 'date' || name === 'time') return null;
  return knownMetrics[name] ?? metricOf(name, unit);
}

/** Columns of nvidia-smi(1), dmon; pclk is the SM clock, sm what NVML calls GPU utilization. */
const knownMetrics: Record<string, Metric> = {
  pwr: metric('power_w'),
  gtemp: metric('temperature_c'),
  mtemp: metric('memory_temperature_c'),
  sm: metric('utilization_percent'),
  mem: metric('memory_utilization_percent'),
  enc: metric('encoder_utilization_percent'),
  dec: metric('decoder_utilization_percent'),
  jpg: metric('jpeg_utilization_percent'),
  ofa: metric('optical_flow_utilization_percent'),
  mclk: metric('memory_clock_mhz'),
  pclk: metric('sm_clock_mhz'),
  pviol: metric('power_violation_percent'),
  tviol: metric('thermal_violation'),
  fb: metric(memoryUsed, 2 ** 20),
  bar1: metric('bar1_used_bytes', 2 ** 20),
  ccpm: metric('protected_memory_used_bytes', 2 ** 20),
  sbecc: metric('ecc_single_bit_errors'),
  dbecc: metric('ecc_double_bit_errors'),
  pci: metric('pcie_replay_errors'),
  rxpci: metric('pcie_rx_mb_per_s'),
  txpci: metric('pcie_tx_mb_per_s'),
};
