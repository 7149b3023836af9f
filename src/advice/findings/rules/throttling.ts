import { isKernelBar } from '../../../model/bars.js';
import type { MonitorDevice } from '../../../model/documents/monitor.js';
import type { PhaseKind } from '../../../model/documents/trace.js';
import { headlineTime } from '../../../model/headline-time.js';
import { doubt } from '../doubt.js';
import { clocksSql, heldDownSql } from '../queries/monitor-queries.js';
import type { FindingContext, FoundDraft, Rule } from '../rule.js';
import { monitorOf } from '../session-analyses.js';
import { formatPercent } from '../../../vocabulary/format.js';

/** Of the time: shorter is a sample at the edge of a load. */
const leastShare = 0.02;
/** A clock this little lower is the GPU's own stepping. */
const leastDrop = 0.03;
/** Utilisation from which the analysis of samples calls a GPU busy (src/facts/monitor). */
const busyPercent = 50;

/** Clocks throttled by power, heat or hand, in the stages they hit (analysis of the samples: src/facts/monitor). */
export const throttling: Rule = {
  id: 'throttling',
  title: 'Throttled clocks',
  docs: {
    finds: "Power, heat or a manual setting lowered the GPU's clocks while it worked.",
    needs: 'samples of clocks and throttle reasons (NVML or nvidia-smi)',
    gain: 'Half of the time lost to the lower clock; between 0 and all of it. Without stages no gain is claimed.',
    change: 'Raise the power limit, cool the GPU, or reset the clocks, as the reason says.',
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
    const devices = used(context, monitor?.devices ?? []);
    if (devices.length === 0)
      return { outcome: 'not_applicable', why: 'No GPU clocks were sampled during the session.' };
    const findings: FoundDraft[] = [];
    for (const device of devices) findings.push(...(await ofDevice(context, device)));
    if (findings.length > 0) return { outcome: 'fired', findings };
    // Steady clocks alone do not say that nothing throttled them: they may have been low all the time.
    const told = devices.some(({ throttling: { share } }) => share.value !== null);
    return { outcome: told ? 'not_fired' : 'not_applicable', why: devices.map(whyNot).join(' ') };
  },
};

/** The device of the timeline; without one every device that worked. */
function used({ scope, manifest }: FindingContext, devices: readonly MonitorDevice[]): MonitorDevice[] {
  const focus = scope?.source.focus.device ?? null;
  if (focus !== null) return devices.filter((device) => device.scope === `gpu${focus}`);
  const busy = devices.filter(
    ({ metrics }) =>
      (metrics.find(({ metric }) => metric === 'utilization_percent')?.max ?? 0) >= busyPercent,
  );
  return manifest.workload?.device === 'cpu' ? [] : busy;
}

function whyNot({ scope, throttling: { share }, clock }: MonitorDevice): string {
  const held =
    share.value === null
      ? share.reason.text
      : `the clocks of ${scope} were throttled for ${formatPercent(share.value)} of the time`;
  const dropped = clock.dropped_share.value;
  return `${held.replace(/\.$/, '')}${dropped === null ? '' : `; they were under 90 % of the usual for ${formatPercent(dropped)} of the busy time`}.`;
}

async function ofDevice(context: FindingContext, device: MonitorDevice): Promise<FoundDraft[]> {
  const { scope, throttling: held, clock } = device;
  const lowered = held.periods.filter(({ clock_drop: drop }) => drop !== null && drop >= leastDrop);
  const loweredNs = lowered.reduce((sum, { dur_ns }) => sum + dur_ns, 0);
  if ((held.share.value ?? 0) < leastShare || loweredNs === 0) {
    const dropped = clock.dropped_share.value ?? 0;
    return dropped < leastShare ? [] : [await unexplained(context, device, dropped)];
  }
  const drop = lowered.reduce((sum, { dur_ns, clock_drop }) => sum + dur_ns * clock_drop!, 0) / loweredNs;
  const [worst] = held.reasons;
  const why = held.reasons
    .map(({ words, share }) => `${words} (${formatPercent(share)} of the time)`)
    .join(', ');
  const text = `${scope}: ${why}; the SM clock was ${formatPercent(drop)} under its usual ${Math.round(clock.usual_mhz.value ?? 0)} MHz meanwhile`;
  const { evidence } = await context.evidence(heldDownSql(scope), () => text);
  const common = {
    cause: `${why[0]!.toUpperCase()}${why.slice(1)} throttled the clocks of ${scope}: what computes runs slower by as much, what waits for memory or the host does not.`,
    change: changeOf(worst!.reason),
    evidence: [evidence],
    check: 'inferscope monitor --while -- <command>, then the same run again',
  };
  const hits = await stagesHit(context, lowered);
  const found = hits.flatMap(({ kind, share, loss }): FoundDraft[] => {
    const waterfall = context.waterfalls.find((one) => one.kind === kind);
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
        title: `Throttled: ${worst!.words} holds the clock ${formatPercent(drop)} down in ${formatPercent(share)} of the ${kind} time`,
        at_stake_ms: lost,
        gain: {
          expected_ms: lost / 2,
          low_ms: 0,
          high_ms: lost,
          after_ms: measured - lost / 2,
          assumption:
            'Kernels that compute run faster with the SM clock, those that wait for memory do not; half of their time is taken for the expectation.',
          what_if: null,
        },
        confidence: 'medium',
        bars: kernels.filter(({ ms }) => ms > 0).map(({ id }) => id),
      },
    ];
  });
  if (found.length > 0) return found;
  const where =
    hits.length > 0
      ? `, in ${hits.map(({ kind, share }) => `${formatPercent(share)} of ${kind}`).join(' and ')}`
      : '';
  return [
    doubt({
      ...common,
      title: `Throttled: ${worst!.words} held ${scope} down for ${formatPercent(held.share.value!)} of the time, its clock ${formatPercent(drop)} lower${where}`,
    }),
  ];
}

async function unexplained(
  context: FindingContext,
  { scope, clock }: MonitorDevice,
  dropped: number,
): Promise<FoundDraft> {
  const text = `${scope}: under 90 % of its usual ${Math.round(clock.usual_mhz.value ?? 0)} MHz in ${formatPercent(dropped)} of the time it was busy`;
  const { evidence } = await context.evidence(clocksSql(scope, busyPercent), () => text);
  return doubt({
    title: `Clock drops: ${text}`,
    cause:
      'The SM clock fell while the GPU worked and nothing that was sampled says why: short loads, whose clocks are still rising, look like that too.',
    change: {
      kind: 'environment',
      text: 'Sample what holds the clocks down, and compare runs of the same clock only.',
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
      text: 'The clocks are set by hand: reset them if that is not meant.',
      example: 'nvidia-smi --reset-gpu-clocks',
    };
  if (reason.includes('thermal'))
    return {
      kind: 'environment',
      text: 'The GPU is too hot: see to its air or water, or to its neighbours, before anything of the program.',
      example: 'nvidia-smi -q -d TEMPERATURE',
    };
  return {
    kind: 'environment',
    text: 'The power limit decides: raise it where that is allowed, or take the capped clock for what this GPU gives under this load.',
    example: 'nvidia-smi -q -d POWER',
  };
}

interface Hit {
  kind: PhaseKind;
  /** Of the stages' time. */
  share: number;
  /** Time-weighted loss of clock over all of the stages' time. */
  loss: number;
}

/** Overlap of the throttled periods with the timed stages of every execution. */
async function stagesHit(
  { database, has }: FindingContext,
  periods: MonitorDevice['throttling']['periods'],
): Promise<Hit[]> {
  if (!has('stages')) return [];
  const values = periods
    .map(({ start_ns: start, dur_ns: dur, clock_drop: drop }) => `(${start}, ${start + dur}, ${drop})`)
    .join(', ');
  return database.query<Hit>(
    `WITH held(start_ns, end_ns, clock_drop) AS (VALUES ${values}),
     steps AS (SELECT kind, start_ns, end_ns FROM stages
       WHERE kind IN ('prefill', 'decode', 'mixed') AND NOT coalesce(warmup, false) AND end_ns > start_ns),
     hit AS (
       SELECT kind, least(s.end_ns, h.end_ns) - greatest(s.start_ns, h.start_ns) AS ns, clock_drop
       FROM steps s JOIN held h ON s.start_ns < h.end_ns AND h.start_ns < s.end_ns)
     SELECT kind, sum(ns) / (SELECT sum(end_ns - start_ns) FROM steps w WHERE w.kind = hit.kind) AS share,
            sum(ns * clock_drop) / (SELECT sum(end_ns - start_ns) FROM steps w WHERE w.kind = hit.kind) AS loss
     FROM hit GROUP BY kind ORDER BY loss DESC`,
  );
}
