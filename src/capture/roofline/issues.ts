import type { GpuRoofline, MeasuredGpu } from '../../model/documents/gpu-roofline.js';
import type { Issue } from '../../model/document.js';
import type { MicrobenchmarkLine } from '../../model/record.js';
import { throttleReasons } from '../../model/throttle-reasons.js';
import { formatPercent, formatDuration, formatQuantity } from '../../vocabulary/format.js';

/** A GPU of the same name this much slower than the first differs from it (cooling, power limit, a fault). */
const outlierShare = 0.95;
/** Above `aboveSheet` the data sheet or our calculation is wrong; below `farBelowSheet` another process or a power limit interfered. */
const aboveSheet = 1.02;
const farBelowSheet = 0.4;
const wideSpread = 0.05;

/** Reasons to doubt measured rooflines. */
export function roofIssues(gpu: MeasuredGpu, lines: readonly MicrobenchmarkLine[]): Issue[] {
  return [
    ...throttlingIssues(gpu),
    ...sheetIssues(gpu),
    ...spreadIssues(gpu),
    ...unmeasuredIssues(gpu, lines),
  ];
}

const deviceName = ({ index, name }: MeasuredGpu) => `cuda:${index} (${name})`;

function namedResults(gpu: MeasuredGpu) {
  return [
    ...gpu.compute.map((result) => ({ ...result, what: `${result.dtype} GEMM` })),
    ...gpu.bandwidth.map((result) => ({ ...result, what: result.pattern as string })),
  ];
}

/** A power cap is normal for large GEMMs on data-center GPUs; thermal and hardware slowdowns are faults of this machine. */
function throttlingIssues(gpu: MeasuredGpu): Issue[] {
  const throttled = namedResults(gpu).filter((result) => result.throttled_by.length > 0);
  const reasons = [...new Set(throttled.flatMap((result) => result.throttled_by))];
  return reasons.map((reason): Issue => {
    const known = throttleReasons.find(({ name }) => name === reason);
    const affected = throttled.filter((result) => result.throttled_by.includes(reason));
    const clocks = affected.flatMap(({ sm_clock_mhz: clock }) => (clock === null ? [] : [clock]));
    const slowestClock = clocks.length > 0 ? `, down to ${formatQuantity(Math.min(...clocks), 'MHz')}` : '';
    return {
      code: 'throttled',
      severity: reason === 'sw_power_cap' ? 'info' : 'warning',
      text: `${deviceName(gpu)}: clocks were throttled (${known?.label ?? reason}${slowestClock}) during ${affected.map((result) => result.what).join(', ')}: these peaks are sustained values, below those at the maximum clock.`,
      count: affected.length,
    };
  });
}

function sheetIssues(gpu: MeasuredGpu): Issue[] {
  return namedResults(gpu).flatMap(({ what, of_sheet }): Issue[] => {
    const share = of_sheet.value;
    if (share === null || (share <= aboveSheet && share >= farBelowSheet)) return [];
    const percent = formatPercent(share);
    const text =
      share > aboveSheet
        ? `${deviceName(gpu)}: ${what} measured ${percent} of the data sheet: either the data sheet or the FLOP count is wrong here.`
        : `${deviceName(gpu)}: ${what} reached only ${percent} of the data sheet: another process, a low power limit or a slow kernel. Check with inferscope roofline --fresh on an idle machine.`;
    return [
      { code: share > aboveSheet ? 'above_data_sheet' : 'below_data_sheet', severity: 'warning', text },
    ];
  });
}

function spreadIssues(gpu: MeasuredGpu): Issue[] {
  const wide = namedResults(gpu).filter((result) => result.sd_share > wideSpread);
  if (wide.length === 0) return [];
  const each = wide.map((result) => `${result.what} ${formatPercent(result.sd_share)}`).join(', ');
  return [
    {
      code: 'wide_spread',
      severity: 'warning',
      text: `Roofline of ${deviceName(gpu)}: repeated runs of one operation differ strongly (standard deviation: ${each}).`,
      count: wide.length,
    },
  ];
}

/** Kernel and dtype combinations without a measurement, with the message of the first case. */
function unmeasuredIssues(gpu: MeasuredGpu, lines: readonly MicrobenchmarkLine[]): Issue[] {
  const groups = new Map<string, MicrobenchmarkLine[]>();
  for (const line of lines) {
    const key = line.kernel === 'gemm' ? `${line.dtype} GEMM` : line.kernel;
    groups.set(key, [...(groups.get(key) ?? []), line]);
  }
  return [...groups].flatMap(([what, cases]): Issue[] => {
    if (cases.some((line) => line.outcome === 'measured')) return [];
    const { outcome, text } = cases[0]!;
    return [
      {
        code: outcome === 'unsupported' ? 'unsupported' : 'not_measured',
        severity: outcome === 'unsupported' || outcome === 'stopped' ? 'info' : 'warning',
        text: `${deviceName(gpu)}: ${what} was not measured (${outcome.replaceAll('_', ' ')}${text ? `: ${text}` : ''}).`,
      },
    ];
  });
}

/** Reports GPUs that differ from the first fully measured GPU of the same name. */
export function outlierIssues(gpus: readonly MeasuredGpu[]): Issue[] {
  const first = gpus.find((gpu) => gpu.scope === 'full');
  if (!first) return [];
  return gpus
    .filter((gpu) => gpu.name === first.name && gpu !== first)
    .flatMap((gpu) => {
      const pairs = namedResults(gpu).flatMap((result) => {
        const reference = namedResults(first).find(({ what }) => what === result.what);
        return reference
          ? [
              {
                what: result.what,
                share: reference.median_ns / result.median_ns,
                isSameCase: reference.case === result.case,
              },
            ]
          : [];
      });
      return pairs
        .filter(({ share, isSameCase }) => isSameCase && (share < outlierShare || share > 1 / outlierShare))
        .map(({ what, share }): Issue => ({
          code: 'gpus_differ',
          severity: 'warning',
          text: `${deviceName(gpu)} reaches ${formatPercent(share)} of cuda:${first.index} in ${what}: cooling, power limits or a fault can cause differences between GPUs of one name.`,
        }));
    });
}

/** After this time a cable or the cooling may have changed; the key covers driver and PyTorch. */
const staleAfterS = 30 * 24 * 3600;

/** Issues of a cached roofline in addition to its own. */
export function cachedIssues({ issues }: GpuRoofline, cached: boolean, ageS: number): Issue[] {
  if (!cached || ageS <= staleAfterS) return issues;
  const text = `The GPUs were measured ${formatDuration(ageS)} ago; inferscope roofline --fresh repeats the measurement.`;
  return [...issues, { code: 'roofline_old', severity: 'info', text }];
}
