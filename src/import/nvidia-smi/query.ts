import { readLines } from '../interrupted.js';
import type { ImportTarget } from '../../model/workbench.js';
import type { CaptureFacts, Fact, ImportContext, Importer, ImportOutcome } from '../importer.js';
import {
  type GpuSample,
  loadSamples,
  localTimeNs,
  memoryUsed,
  type Metric,
  metric,
  metricOf,
  noSamples,
} from './samples.js';

/**
 * `nvidia-smi --query-gpu=… --format=csv` with any fields, repeated by -l or -lms; one line per GPU and sample. Units
 * are in the header, and after each value unless `nounits` was given:
 * ```
 * timestamp, index, name, utilization.gpu [%], memory.used [MiB], power.draw [W]
 * 2026/11/21 04:55:39.073, 0, NVIDIA H200, 0 %, 0 MiB, 79.46 W
 * ```
 */
export const nvidiaSmiQueryImporter = {
  name: 'nvidia-smi-query',
  sniff(firstBytes) {
    const header = firstBytes.split('\n', 1)[0]!.trim();
    // A name, then its unit. Linear time: 64 KiB of brackets must not take seconds.
    const fields = header
      .split(',')
      .map((field) => /^([a-z][\w.]*)(?:\s+\[[^\][]*\])?$/.exec(field.trim())?.[1]);
    return fields.every((field) => field !== undefined) && fields.some((field) => queryField.test(field));
  },
  async facts(path): Promise<CaptureFacts> {
    let zero: bigint | null = null;
    const hardware: Record<string, Fact> = {};
    const software: Record<string, Fact> = {};
    for await (const { time, texts } of readSamples(path, () => {})) {
      zero = time.realtime_ns;
      const name = texts.get('name') ?? texts.get('gpu_name');
      if (name) hardware['gpu_name'] = name;
      const driver = texts.get('driver_version');
      if (driver) software['nvidia_driver'] = driver;
      break;
    }
    return {
      tool: { name: 'nvidia-smi', version: null },
      realtime_zero_ns: zero,
      command: null,
      hardware,
      software,
      purpose: 'telemetry',
    };
  },
  load: (path, { sink }: Pick<ImportTarget, 'sink'>, context: ImportContext): Promise<ImportOutcome> =>
    loadSamples(path, sink, context, readSamples, { name: 'CLOCK_REALTIME, ms', resolution_ns: 1e6 }),
} satisfies Importer;

const queryField =
  /^(utilization\.|memory\.(used|total|free)|power\.|clocks|temperature\.|fan\.speed|pstate|pcie\.)/;

interface Sample extends GpuSample {
  texts: Map<string, string>;
}

async function* readSamples(
  path: string,
  onCutOff: () => void,
  signal?: AbortSignal,
): AsyncGenerator<Sample> {
  let names: string[] = [];
  let metrics: (Metric | null)[] = [];
  let first: bigint | null = null;
  let round = -1;
  let samplesInRound = new Set<string>();
  const devices = new Map<string, number>();
  for await (const line of readLines(path, signal)) {
    const fields = line.trim().split(/,\s*/);
    if (fields[0] === '') continue;
    const headings = fields.map((field) => /^([a-z][\w.]*)(?:\s*\[(.*)\])?$/.exec(field));
    // Appended logs repeat the header.
    if (
      headings.every((heading) => heading !== null) &&
      headings.some((heading) => queryField.test(heading![1]!))
    ) {
      names = headings.map((heading) => heading![1]!);
      metrics = headings.map((heading) => fieldMetric(heading![1]!, heading![2] ?? ''));
      continue;
    }
    if (names.length === 0) continue;
    if (fields.length !== names.length) {
      onCutOff();
      continue;
    }
    const texts = new Map(names.map((name, i) => [name, fields[i]!]));
    const timestamp = texts.get('timestamp') ?? '';
    const device = deviceFields.map((name) => texts.get(name)).find((text) => text !== undefined);
    // Without a field that identifies GPUs: by the order of the lines with one timestamp.
    const key =
      device ?? String([...samplesInRound].filter((sample) => sample.startsWith(`${timestamp} `)).length);
    if (round < 0 || samplesInRound.has(`${timestamp} ${key}`) || !isSameRound(samplesInRound, timestamp)) {
      round++;
      samplesInRound = new Set();
    }
    samplesInRound.add(`${timestamp} ${key}`);
    const [date = '', clock = ''] = timestamp.split(' ');
    const realtime_ns = localTimeNs(date, clock);
    first ??= realtime_ns;
    const since_first_ns = realtime_ns === null ? round * 1e9 : Number(realtime_ns - first!);
    const index = texts.get('index');
    if (!devices.has(key)) devices.set(key, index === undefined ? devices.size : Number(index));
    const values = metrics.flatMap((name, i): [Metric, string][] => (name ? [[name, fields[i]!]] : []));
    yield { time: { realtime_ns, since_first_ns }, gpu: devices.get(key)!, values, texts };
  }
  if (names.length === 0)
    throw noSamples(path, 'Its first line is not a --query-gpu header (was noheader given?).');
}

/** GPUs of one sample have timestamps at most a few ms apart; a field that names the GPU is unambiguous. */
function isSameRound(samplesInRound: Set<string>, timestamp: string): boolean {
  return timestamp === '' || [...samplesInRound].some((sample) => sample.startsWith(`${timestamp} `));
}

const deviceFields = ['index', 'uuid', 'gpu_uuid', 'pci.bus_id', 'gpu_bus_id', 'serial'];

/** Fields that name the device or the time are not metrics. */
const notMetrics =
  /^(timestamp|index|count|name|gpu_name|uuid|gpu_uuid|serial|gpu_serial|driver_version|vbios_version|pci\.|gpu_bus_id|inforom|driver_model|compute_mode|mig\.mode|accounting\.mode|persistence_mode|compute_cap)/;

function fieldMetric(name: string, unit: string): Metric | null {
  if (notMetrics.test(name)) return null;
  return knownMetrics[name] ?? metricOf(name, unit);
}

const mebibyte = 2 ** 20;

/** Fields of `nvidia-smi --help-query-gpu` that the NVML sampler also reads, under its names. */
const knownMetrics: Record<string, Metric> = {
  'utilization.gpu': metric('utilization_percent'),
  'utilization.memory': metric('memory_utilization_percent'),
  'memory.used': metric(memoryUsed, mebibyte),
  'memory.free': metric('memory_free_bytes', mebibyte),
  'memory.reserved': metric('memory_reserved_bytes', mebibyte),
  'memory.total': metric('memory_total_bytes', mebibyte),
  'power.draw': metric('power_w'),
  'power.draw.average': metric('power_average_w'),
  'power.draw.instant': metric('power_instant_w'),
  'power.limit': metric('power_limit_w'),
  'enforced.power.limit': metric('power_limit_enforced_w'),
  'clocks.sm': metric('sm_clock_mhz'),
  'clocks.current.sm': metric('sm_clock_mhz'),
  'clocks.mem': metric('memory_clock_mhz'),
  'clocks.current.memory': metric('memory_clock_mhz'),
  'clocks.gr': metric('graphics_clock_mhz'),
  'clocks.current.graphics': metric('graphics_clock_mhz'),
  'clocks.max.sm': metric('max_sm_clock_mhz'),
  'clocks.max.memory': metric('max_memory_clock_mhz'),
  'temperature.gpu': metric('temperature_c'),
  'temperature.memory': metric('memory_temperature_c'),
  'clocks_event_reasons.active': metric('throttle_bits'),
  'clocks_throttle_reasons.active': metric('throttle_bits'),
};
