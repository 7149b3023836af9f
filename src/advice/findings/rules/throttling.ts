import { gainOf } from '../gain.js';
import { stepKindsSql } from '../../../model/record.js';
import { isKernelBar } from '../../../model/bars.js';
import type { MonitorDevice } from '../../../model/documents/monitor.js';
import type { PhaseKind } from '../../../model/documents/trace.js';
import { headlineTime } from '../../../model/headline-time.js';
import { doubt } from '../doubt.js';
import { clocksSql, throttledSql } from '../queries/monitor-queries.js';
import type { FindingContext, FoundDraft, Rule } from '../rule.js';
import { monitorOf } from '../session-analyses.js';
import { formatPercent, formatFigure } from '../../../vocabulary/format.js';
import { capitalize, withoutEnd } from '../../../vocabulary/sentence.js';
import { scopeLabel } from '../../../vocabulary/sampled-metrics.js';

/** Share of the time: less may be a single sample at the edge of a load. */
const minShare = 0.02;
/** Smaller clock differences are the GPU's normal stepping. */
const minDrop = 0.03;
/** Utilization from which a GPU counts as busy (src/facts/monitor). */
const busyPercent = 50;

/** Clocks throttled by power, temperature or a manual setting, in the affected stages (samples: src/facts/monitor). */
export const throttling: Rule = {
  id: 'throttling',
  title: 'Throttled clocks',
  docs: {
    finds: "Power, temperature or a manual setting lowered the GPU's clocks under load.",
    needs: 'samples of clocks and throttle reasons (NVML or nvidia-smi)',
    gain: 'Half of the time lost to the lower clock; range 0 to all of it. Without stages no gain is claimed.',
    change: 'Raise the power limit, improve cooling, or reset the clocks, depending on the throttle reason.',
    withheld: 'throttled less than 2 % of the time, or clocks less than 3 % lower',
  },
  references: [
    {
      title: 'NVML: clocks event reasons',
      url: 'https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html',
    },
  ],
  async find(context) {
    const monitor = await monitorOf(context);
    const devices = usedDevices(context, monitor?.devices ?? []);
    if (devices.length === 0)
      return { outcome: 'not_applicable', why: 'No samples of a busy GPU were taken during the session.' };
    const findings: FoundDraft[] = [];
    for (const device of devices) findings.push(...(await deviceFindings(context, device)));
    if (findings.length > 0) return { outcome: 'fired', findings };
    // Steady clocks do not prove that nothing throttled them: they may have been low all the time.
    const known = devices.some(({ throttling: { share } }) => share.value !== null);
    return { outcome: known ? 'not_fired' : 'not_applicable', why: devices.map(whyNot).join(' ') };
  },
};

/** The device of the timeline; without one, every device that was busy. */
function usedDevices(
  { scope, manifest }: FindingContext,
  devices: readonly MonitorDevice[],
): MonitorDevice[] {
  const focus = scope?.source.focus.device ?? null;
  if (focus !== null) return devices.filter((device) => device.scope === `gpu${focus}`);
  const busy = devices.filter(
    ({ metrics }) =>
      (metrics.find(({ metric }) => metric === 'utilization_percent')?.max ?? 0) >= busyPercent,
  );
  return manifest.workload?.device === 'cpu' ? [] : busy;
}

function whyNot({ scope, throttling: { share }, clock }: MonitorDevice): string {
  const reasonText =
    share.value === null
      ? share.reason.text
      : `the clocks of ${scopeLabel(scope)} were throttled for ${formatPercent(share.value)} of the time`;
  const dropped = clock.dropped_share.value;
  return `${withoutEnd(reasonText)}${dropped === null ? '' : `; they were under 90 % of the usual clock for ${formatPercent(dropped)} of the busy time`}.`;
}

async function deviceFindings(context: FindingContext, device: MonitorDevice): Promise<FoundDraft[]> {
  const { scope, throttling: throttled, clock } = device;
  const loweredPeriods = throttled.periods.filter(({ clock_drop: drop }) => drop !== null && drop >= minDrop);
  const loweredNs = loweredPeriods.reduce((sum, { dur_ns }) => sum + dur_ns, 0);
  if ((throttled.share.value ?? 0) < minShare || loweredNs === 0) {
    const dropped = clock.dropped_share.value ?? 0;
    return dropped < minShare ? [] : [await findUnexplained(context, device, dropped)];
  }
  const drop =
    loweredPeriods.reduce((sum, { dur_ns, clock_drop }) => sum + dur_ns * clock_drop!, 0) / loweredNs;
  const [worst] = throttled.reasons;
  const why = throttled.reasons
    .map(({ label, share }) => `${label} (${formatPercent(share)} of the time)`)
    .join(', ');
  const text = `${scopeLabel(scope)}: ${why}; the SM clock was ${formatPercent(drop)} under its usual ${formatFigure(clock.usual_mhz)} during that time`;
  const { evidence } = await context.evidence(throttledSql(scope), () => text);
  const common = {
    cause: `${capitalize(why)} throttled the clocks of ${scopeLabel(scope)}: compute-bound kernels slow down in proportion, memory-bound and host-bound parts do not.`,
    change: changeOf(worst!.reason),
    evidence: [evidence],
    check: 'inferscope monitor --while -- <command>, then repeat the run',
  };
  const hits = await readThrottledStages(context, loweredPeriods);
  const drafts = hits.flatMap(({ kind, share, loss }): FoundDraft[] => {
    const waterfall = context.waterfalls.find((candidate) => candidate.kind === kind);
    const measured = waterfall && headlineTime(waterfall).value;
    if (!waterfall || !measured) return [];
    const kernels = waterfall.bars.filter(({ id }) => isKernelBar(id));
    const kernelMs = kernels.reduce((sum, { ms }) => sum + ms, 0);
    const lost = kernelMs * loss;
    if (lost < 0.01 * measured) return [];
    return [
      {
        ...common,
        stage: kind,
        title: `Throttled: ${worst!.label} lowers the clock by ${formatPercent(drop)} in ${formatPercent(share)} of the ${kind} time`,
        at_stake_ms: lost,
        gain: gainOf(
          measured,
          lost / 2,
          'Compute-bound kernels speed up with the SM clock, memory-bound ones do not; the expected value assumes half of the time.',
          { low_ms: 0, high_ms: lost },
        ),
        confidence: 'medium',
        bars: kernels.filter(({ ms }) => ms > 0).map(({ id }) => id),
      },
    ];
  });
  if (drafts.length > 0) return drafts;
  const where =
    hits.length > 0
      ? `, in ${hits.map(({ kind, share }) => `${formatPercent(share)} of ${kind}`).join(' and ')}`
      : '';
  return [
    doubt({
      ...common,
      title: `Throttled: ${worst!.label} limited ${scopeLabel(scope)} for ${formatPercent(throttled.share.value!)} of the time, with a ${formatPercent(drop)} lower clock${where}`,
    }),
  ];
}

async function findUnexplained(
  context: FindingContext,
  { scope, clock }: MonitorDevice,
  dropped: number,
): Promise<FoundDraft> {
  const text = `${scopeLabel(scope)}: under 90 % of its usual ${formatFigure(clock.usual_mhz)} in ${formatPercent(dropped)} of the time it was busy`;
  const { evidence } = await context.evidence(clocksSql(scope, busyPercent), () => text);
  return doubt({
    title: `Clock drops: ${text}`,
    cause:
      'The SM clock dropped under load and no sampled throttle reason explains it; short loads with still rising clocks look the same.',
    change: {
      kind: 'environment',
      text: 'Sample the throttle reasons, and compare only runs with the same clock.',
      example: 'inferscope monitor --hz 20 --while -- <command>',
    },
    confidence: 'low',
    evidence: [evidence],
    check: 'inferscope monitor --while -- <command>',
  });
}

function changeOf(reason: string): FoundDraft['change'] {
  if (reason === 'applications_clocks_setting' || reason === 'display_clock_setting')
    return {
      kind: 'environment',
      text: 'The clocks are set manually: reset them if that is not intended.',
      example: 'nvidia-smi --reset-gpu-clocks',
    };
  if (reason.includes('thermal'))
    return {
      kind: 'environment',
      text: 'The GPU is too hot: fix its cooling before changing the program.',
      example: 'nvidia-smi -q -d TEMPERATURE',
    };
  return {
    kind: 'environment',
    text: 'The power limit is reached: raise it if allowed, or accept the capped clock as the speed of this GPU under this load.',
    example: 'nvidia-smi -q -d POWER',
  };
}

interface ThrottledStage {
  kind: PhaseKind;
  /** Share of the stages' time. */
  share: number;
  /** Time-weighted loss of clock over all of the stages' time. */
  loss: number;
}

/** Overlap of the throttled periods with the timed stages of every execution. */
async function readThrottledStages(
  { database, has }: FindingContext,
  periods: MonitorDevice['throttling']['periods'],
): Promise<ThrottledStage[]> {
  if (!has('stages')) return [];
  const values = periods
    .map(({ start_ns: start, dur_ns: dur, clock_drop: drop }) => `(${start}, ${start + dur}, ${drop})`)
    .join(', ');
  return database.query<ThrottledStage>(
    `WITH throttled(start_ns, end_ns, clock_drop) AS (VALUES ${values}),
     steps AS (SELECT kind, start_ns, end_ns FROM stages
       WHERE kind IN ${stepKindsSql} AND NOT coalesce(warmup, false) AND end_ns > start_ns),
     hit AS (
       SELECT kind, least(s.end_ns, h.end_ns) - greatest(s.start_ns, h.start_ns) AS ns, clock_drop
       FROM steps s JOIN throttled h ON s.start_ns < h.end_ns AND h.start_ns < s.end_ns)
     SELECT kind, sum(ns) / (SELECT sum(end_ns - start_ns) FROM steps w WHERE w.kind = hit.kind) AS share,
            sum(ns * clock_drop) / (SELECT sum(end_ns - start_ns) FROM steps w WHERE w.kind = hit.kind) AS loss
     FROM hit GROUP BY kind ORDER BY loss DESC`,
  );
}
