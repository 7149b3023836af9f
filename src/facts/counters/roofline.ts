import type { KernelRoofline } from '../../model/documents/counters.js';
import { figure, type Figure, missing } from '../../model/figure.js';
import { flopByUnit, peakOf } from './flop.js';
import { combine, type Metrics, valueOf } from './metrics.js';

/** Position of a kernel on the roofline of the device, from counters alone. */
export function kernelRoofline(metrics: Metrics): KernelRoofline {
  const duration = valueOf(metrics, 'gpu__time_duration.sum');
  const seconds = duration === null ? null : duration / 1e9;
  const time: Figure =
    seconds === null
      ? missing('not_collected', 'ncu did not collect gpu__time_duration.sum')
      : figure(seconds, 's', 'gpu__time_duration.sum');
  const units = flopByUnit(metrics, seconds);
  const flop = totalFlop(units);
  const bytes = dramBytes(metrics, seconds);
  const intensity: Figure =
    bytes.value === 0
      ? missing('no_dram_traffic', 'no DRAM traffic: all data was in the caches')
      : combine([flop, bytes], 'FLOP/byte', 'FLOP / DRAM bytes', ([f, b]) => f! / b!);
  const achieved = combine([flop, time], 'FLOP/s', 'FLOP / duration', ([f, s]) => f! / s!);
  const busiest = units
    .filter((unit) => (unit.flop.value ?? 0) > 0)
    .sort((x, y) => y.flop.value! - x.flop.value!)[0];
  const peak =
    flop.value === null
      ? flop
      : busiest
        ? peakOf(metrics, busiest.unit)
        : missing('no_flop', 'it has no floating-point operations');
  const bandwidth = combine(
    [
      metricValue(metrics, 'dram__bytes.sum.peak_sustained'),
      metricValue(metrics, 'dram__cycles_elapsed.avg.per_second'),
    ],
    'B/s',
    'dram__bytes.sum.peak_sustained × DRAM clock of the run',
    ([perCycle, clock]) => perCycle! * clock!,
  );
  const roof = combine(
    [peak, intensity, bandwidth],
    'FLOP/s',
    'min(peak, intensity × bandwidth)',
    ([p, i, b]) => Math.min(p!, i! * b!),
  );
  return {
    flop,
    flop_by_unit: units,
    dram_bytes: bytes,
    arithmetic_intensity: intensity,
    achieved_flops: achieved,
    peak_flops: peak,
    peak_dram_bandwidth: bandwidth,
    roof_flops: roof,
    roof_share: combine([achieved, roof], 'ratio', 'achieved / roof', ([a, r]) => a! / r!),
    roof_side:
      roof.value === null || peak.value === null ? null : roof.value < peak.value ? 'memory' : 'compute',
  };
}

/**
 * The sum over the units. With tensor work, units that were not collected are left out, and the source says so: their
 * work is small compared with a GEMM. Without tensor work every unit must be known.
 */
function totalFlop(units: KernelRoofline['flop_by_unit']): Figure {
  const tensor = units.find(({ unit }) => unit === 'tensor')?.flop.value ?? 0;
  const known = units.filter(({ flop }) => flop.value !== null);
  const usedUnits = tensor > 0 ? known : units;
  const source = `${usedUnits.map(({ unit }) => unit).join(' + ')} instructions${usedUnits.length < units.length ? '; others not collected' : ''}`;
  return combine(
    usedUnits.map(({ flop }) => flop),
    'FLOP',
    source,
    (values) => values.reduce((sum, value) => sum + value, 0),
  );
}

/** DRAM bytes: dram__bytes.sum, which is often absent, else reads and writes, else rate × time. */
function dramBytes(metrics: Metrics, seconds: number | null): Figure {
  const sum = valueOf(metrics, 'dram__bytes.sum');
  if (sum !== null) return figure(sum, 'B', 'dram__bytes.sum');
  const read = valueOf(metrics, 'dram__bytes_read.sum');
  const write = valueOf(metrics, 'dram__bytes_write.sum');
  if (read !== null && write !== null)
    return figure(read + write, 'B', 'dram__bytes_read.sum + dram__bytes_write.sum');
  const rate = valueOf(metrics, 'dram__bytes.sum.per_second');
  if (rate !== null && seconds !== null)
    return figure(rate * seconds, 'B', 'dram__bytes.sum.per_second × duration');
  return missing(
    'not_collected',
    'ncu did not collect DRAM bytes (section MemoryWorkloadAnalysis, --set full)',
  );
}

function metricValue(metrics: Metrics, name: string): Figure {
  const value = valueOf(metrics, name);
  return value === null ? missing('not_collected', `ncu did not collect ${name}`) : figure(value, '', name);
}
