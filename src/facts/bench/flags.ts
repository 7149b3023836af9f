import { knownEngine } from '../../llm/memory-request.js';
import type { BenchFlag, BenchPlan, BenchPointResult } from '../../model/documents/bench.js';
import type { ManifestData, Workload } from '../../model/manifest.js';
import { sentence, quantity } from '../../vocabulary/sentence-template.js';
import { mean, standardDeviation } from '../../model/statistics.js';
import { formatBytes, formatQuantity, plural } from '../../vocabulary/format.js';
import { onCpu } from './machine.js';
import type { Telemetry } from './sampled.js';
import { perDoubling, sweepOver, independentValues } from './sweeps.js';
import { pointWords, asClause } from './words.js';
import type { IssueCode } from '../../model/issue-codes.js';
import { scopeLabel } from '../../vocabulary/sampled-metrics.js';

/** GPU utilization, percent. */
const lowUtilization = 50;
const goodUtilization = 70;
/** Standard deviation as a share of the mean. */
const maxVariation = 0.05;
/** Share of samples from which throttling gives a warning. */
const minThrottledShare = 0.02;
/** Growth of tokens/s per doubling of the batch below which throughput does not scale. */
const minGain = 1.1;
/** More memory than a driver and a display use on an idle GPU. */
const maxIdleBytes = 2 * 2 ** 30;

interface PointFacts {
  workload: Workload;
  telemetry: Telemetry;
}

/** Conditions that make a point's numbers unreliable, or confirm them. */
export function pointFlags(point: BenchPointResult, { workload, telemetry }: PointFacts): BenchFlag[] {
  if (point.outcome !== 'measured') return [];
  return [
    ...utilizationFlags(point, workload),
    ...varianceFlags(point),
    ...warmupFlags(point),
    ...throttlingFlags(point, telemetry),
    ...otherProcessFlags(point, telemetry),
    ...(point.interleaved
      ? []
      : [
          flag(
            'not_interleaved',
            'info',
            'its repeats ran consecutively, not interleaved with the other points: the comparison includes slow drift of the machine',
          ),
        ]),
  ];
}

const flag = (
  code: IssueCode,
  severity: BenchFlag['severity'],
  text: string | ReturnType<typeof sentence>,
): BenchFlag => ({ code, severity, ...(typeof text === 'string' ? { text } : text) });

function utilizationFlags(point: BenchPointResult, { device, threads }: Workload): BenchFlag[] {
  const gpu = point.machine.gpu_utilization_percent.value;
  const cores = point.machine.cpu_cores_busy.value;
  const percent = gpu ?? (device === 'cpu' && threads && cores !== null ? (100 * cores) / threads : null);
  if (percent === null) return [];
  if (percent > goodUtilization) {
    const text =
      gpu === null
        ? sentence`${cores!} of ${plural(threads!, 'thread')} busy`
        : sentence`GPU utilization ${quantity(percent, '%')}`;
    return [flag('good_utilization', 'good', text)];
  }
  if (percent >= lowUtilization) return [];
  // A small batch does not fill a GPU; threads of a CPU wait for something.
  const severity = gpu === null || point.batch_size > 1 ? 'warning' : 'info';
  const text =
    gpu === null
      ? sentence`${cores!} of ${plural(threads!, 'thread')} busy: ${threads === 1 ? 'it waits for other programs on this machine' : 'threads wait for other programs on this machine or for each other'}`
      : point.batch_size > 1
        ? sentence`GPU utilization ${quantity(percent, '%')}: the GPU waits for the host`
        : sentence`GPU utilization ${quantity(percent, '%')}, as usual for one sequence`;
  return [flag('low_utilization', severity, text)];
}

function varianceFlags(point: BenchPointResult): BenchFlag[] {
  const repeats = point.repeats ?? [];
  const launches = [...new Set(repeats.map(({ launch }) => launch))];
  const cv = (values: readonly number[]) => standardDeviation(values) / mean(values);
  const flags: BenchFlag[] = [];
  if (launches.length > 1) {
    const launchVariation = cv(independentValues(point, ({ e2e_ms }) => e2e_ms));
    if (launchVariation > maxVariation) {
      flags.push(
        flag(
          'high_variance',
          'warning',
          sentence`end-to-end means of launches differ: standard deviation ${quantity(launchVariation, 'ratio')}`,
        ),
      );
    }
  }
  const variations = launches.flatMap((launch) => {
    const launchTimes = repeats.filter((repeat) => repeat.launch === launch).map(({ e2e_ms }) => e2e_ms);
    return launchTimes.length > 1 ? [cv(launchTimes)] : [];
  });
  const pooledVariation = Math.sqrt(mean(variations.map((value) => value * value)));
  if (variations.length > 0 && pooledVariation > maxVariation) {
    flags.push(
      flag(
        'high_variance',
        'warning',
        sentence`repeats of one launch differ by ${quantity(pooledVariation, 'ratio')} end to end`,
      ),
    );
  }
  return flags;
}

function warmupFlags({ warmup: { stable, iterations } }: BenchPointResult): BenchFlag[] {
  if (stable !== false) return [];
  const repeats = iterations.value === null ? null : Math.ceil(iterations.value);
  const text =
    repeats === null
      ? 'warm-up did not settle in some launch: the first repeats may be slow'
      : sentence`warm-up did not settle within ${plural(repeats, 'repeat')} in some launch: the first repeats may be slow`;
  return [flag('warmup_unstable', 'warning', text)];
}

function throttlingFlags({ point }: BenchPointResult, telemetry: Telemetry): BenchFlag[] {
  return telemetry.throttled
    .filter((row) => row.point === point && row.share >= minThrottledShare)
    .map(({ scope, text, share }) =>
      flag(
        'throttling',
        'warning',
        sentence`${scopeLabel(scope)}: ${text} in ${quantity(share, 'ratio')} of the samples`,
      ),
    );
}

function otherProcessFlags({ point }: BenchPointResult, telemetry: Telemetry): BenchFlag[] {
  return telemetry.metrics
    .filter(
      (row) =>
        row.point === point &&
        row.metric === 'compute_processes' &&
        telemetry.gpus.includes(row.scope) &&
        row.largest > 1,
    )
    .map(({ scope, largest }) =>
      flag(
        'other_process',
        'warning',
        sentence`${scopeLabel(scope)} had ${largest} compute processes: another program may have used it`,
      ),
    );
}

interface VariantFacts {
  workload: Workload;
  command: readonly string[];
  hardware: ManifestData['hardware'];
  /** Memory in use on each GPU before the engine was loaded. */
  usedBefore: { device: number; bytes: number }[];
  plan: BenchPlan;
}

/** Flags of a whole variant: limits, scaling, and unexpected conditions. */
export function variantFlags(points: readonly BenchPointResult[], facts: VariantFacts): BenchFlag[] {
  return [
    ...cpuByAccidentFlags(facts),
    ...usedBeforeFlags(facts),
    ...scalingFlags(points),
    ...memoryLimitFlags(points),
  ];
}

function cpuByAccidentFlags({ workload, command, hardware }: VariantFacts): BenchFlag[] {
  const engine = knownEngine(workload.engine.name);
  const deviceRequested = command.some((word) => /^--device(=|$)/.test(word));
  if (engine === null || engine === 'onnx' || !onCpu(workload) || deviceRequested) return [];
  const gpu = hardware['gpu_name'] ?? hardware['gpu0_name'];
  // vLLM built for GPUs does not start without one, so without a GPU this is a CPU build.
  if (!gpu && engine === 'vllm') return [];
  const why = gpu ? `although this machine has ${gpu}` : 'because it found no GPU';
  return [
    flag(
      'cpu_by_accident',
      'warning',
      `${workload.engine.name} computed on the CPU ${why}; --device cpu states that this is intended`,
    ),
  ];
}

function usedBeforeFlags({ usedBefore: devices, workload }: VariantFacts): BenchFlag[] {
  if (onCpu(workload)) return [];
  return devices
    .filter(({ bytes }) => bytes > maxIdleBytes)
    .map(({ device, bytes }) =>
      flag(
        'other_process',
        'warning',
        `GPU ${device} had ${formatBytes(bytes)} in use by another process before the engine was loaded`,
      ),
    );
}

function scalingFlags(points: readonly BenchPointResult[]): BenchFlag[] {
  const sweep = sweepOver(points, 'batch_size') ?? [];
  return sweep.slice(1).flatMap((to, i): BenchFlag[] => {
    const from = sweep[i]!;
    const [low, high] = [from, to].map(({ throughput }) => throughput.output_tokens_per_s.value);
    if (!low || !high) return [];
    const gain = perDoubling(high / low, from.batch_size, to.batch_size);
    if (gain >= minGain) return [];
    const text = `batch ${to.batch_size} gives ${high > low ? 'hardly' : 'no'} more tokens/s than batch ${from.batch_size}: ${formatQuantity(low, 'tok/s')} → ${formatQuantity(high, 'tok/s')}`;
    return [flag('no_scaling', 'warning', text)];
  });
}

/** The first two sentences of an engine's error, without the advice that follows. */
const firstSentences = (text: string): string =>
  text
    .split('\n')[0]!
    .split(/\. (?=[A-Z])/)
    .slice(0, 2)
    .join('. ');

/** Each point that ran out of memory, with the largest batch that ran with the same prompt and output length. */
function memoryLimitFlags(points: readonly BenchPointResult[]): BenchFlag[] {
  return points
    .filter(({ outcome }) => outcome === 'out_of_memory')
    .map((point) => {
      const fitting = points.filter(
        (other) =>
          other.outcome === 'measured' &&
          other.input_len === point.input_len &&
          other.output_len === point.output_len,
      );
      const largest = Math.max(...fitting.map(({ batch_size }) => batch_size));
      const reason = asClause(firstSentences(point.text ?? 'out of memory'));
      const largestWords = fitting.length > 0 ? `; largest measured ${largest}` : '';
      return flag('out_of_memory', 'warning', `${pointWords(point)} does not fit: ${reason}${largestWords}`);
    });
}
