import { changeFor } from '../framework.js';
import { gainOf } from '../gain.js';
import { deviceOf } from '../../../facts/device.js';
import type { FindingContext, FoundDraft } from '../rule.js';
import type { StageFacts } from '../stage-facts.js';
import { checkAgain, classBars, stageRule } from '../stage-rule.js';
import { instanceFactor, type SequenceKernel, stepSequence } from '../step-sequence.js';
import { callsOf, instanceWord, count, everyInstance, ms, part } from '../words.js';
import { plural } from '../../../vocabulary/format.js';

/** Share of the multiprocessors: with fewer blocks most of the GPU is idle. */
const maxBlockShare = 0.25;
/** Launch cost dominates shorter kernels. */
const minNs = 5_000;
/** Share of the stage: below it, other kernels fill the GPU. */
const minStageShare = 0.3;
/** Assumed number of independent chains (branches, experts, sequences, requests); a timeline does not show it. */
const assumedChains = 4;

/** Kernels too small to fill the GPU run one after another. */
export const serializedStreams = stageRule(
  {
    id: 'serialized_streams',
    title: 'Small kernels run serially',
    docs: {
      finds: 'Kernels too small to fill the GPU run one after another on it.',
      needs: "a GPU timeline: nsys, or PyTorch's profiler with grid sizes",
      gain: 'Assumes that four chains are independent; low end 0, because a timeline does not show dependencies.',
      change: 'Run independent work on separate streams, or batch it into one kernel.',
      withheld:
        'a dense decoder (its operations depend on each other), or less than 30 % of the stage in such kernels',
    },
    references: [
      {
        title: 'CUDA C++ Programming Guide: concurrent kernel execution, streams',
        url: 'https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#streams',
      },
      {
        title: 'PyTorch: CUDA streams',
        url: 'https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-streams',
      },
    ],
  },
  async (context, stage) => {
    if (isDense(context) && stage.kind !== 'outside')
      return 'every operation of a dense decoder depends on the previous one';
    const sms = deviceOf(context.manifest, context.scope?.source.focus.device ?? null).smCount.value;
    if (sms === null) return 'the number of multiprocessors is not known';
    const sequence = await stepSequence(context, stage.kind);
    const soloKernels = soloKernelsOf(sequence);
    const small = soloKernels.filter(
      ({ blocks, dur_ns }) => blocks !== null && blocks <= maxBlockShare * sms && dur_ns >= minNs,
    );
    const factor = instanceFactor(sequence, stage.compute_ms);
    const time = (small.reduce((sum, { dur_ns }) => sum + dur_ns, 0) * factor) / 1e6;
    if (time < minStageShare * stage.wall_ms) {
      return `kernels of at most ${plural(Math.floor(maxBlockShare * sms), 'block')} that run alone take ${part(time, stage.wall_ms)}`;
    }
    return finding(context, stage, { small, time, sms });
  },
);

/** A dense decoder: its operations depend on each other. Only experts are independent, and one kernel computes them together. */
const isDense = ({ model }: FindingContext): boolean =>
  'architecture' in model && model.architecture.layers.every(({ mlp }) => mlp.kind === 'dense');

/** Kernels that run without any concurrent kernel. */
function soloKernelsOf(sequence: readonly SequenceKernel[]): SequenceKernel[] {
  let end = -Infinity;
  return sequence.filter((kernel, index) => {
    const until = kernel.start_ns + kernel.dur_ns;
    const next = sequence[index + 1];
    const isAlone =
      kernel.start_ns >= end && (next === undefined || next.start_ns >= until - 0.1 * kernel.dur_ns);
    end = Math.max(end, until);
    return isAlone;
  });
}

async function finding(
  context: FindingContext,
  stage: StageFacts,
  { small, time, sms }: { small: SequenceKernel[]; time: number; sms: number },
): Promise<FoundDraft> {
  const { kind, wall_ms: wall, instances } = stage;
  const blocks = Math.max(...small.map((kernel) => kernel.blocks ?? 1));
  const streams = new Set(small.map(({ stream }) => stream)).size;
  const fits = Math.max(1, Math.floor(sms / blocks));
  const stake = time * (1 - 1 / Math.min(assumedChains, fits));
  const { evidence } = await context.evidence<{
    kernel: string;
    grid: string;
    us: number;
    per_instance: number;
  }>(
    `SELECT coalesce(name, short_name) AS kernel, grid, round(count(*) / ${instances}, 2) AS per_instance, round(avg(dur_ns) / 1e3, 2) AS us,
            round(sum(exclusive_ns) / 1e6 / ${instances}, 4) AS ms, count(DISTINCT stream) AS streams
     FROM phase_kernels WHERE step_kind = '${kind}' AND dur_ns >= ${minNs} GROUP BY ALL ORDER BY ms DESC`,
    (rows) =>
      rows
        .slice(0, 2)
        .map((row) => `${row.kernel} (${row.grid} blocks): ${callsOf(row)}`)
        .join('; '),
  );
  const text =
    'Run independent work on separate streams (inside a CUDA graph the branches then run concurrently), or batch it into one kernel.';
  return {
    stage: kind,
    title: (share) =>
      `Serial small kernels: ${count(small.length)} kernels of at most ${blocks} blocks for ${sms} multiprocessors run one after another, which costs ${share} of ${everyInstance(kind)}`,
    at_stake_ms: stake,
    cause: `In ${instanceWord(kind)} kernels that occupy at most ${blocks} of ${sms} multiprocessors run for ${ms(time)} without a concurrent kernel, on ${plural(streams, 'stream')}. ${fits > 1 ? `${Math.min(fits, 99)} of them would fit at once. ` : ''}A timeline does not show whether they depend on each other.`,
    change: await changeFor(
      context,
      {
        kind: 'code',
        text,
        example:
          'side = torch.cuda.Stream(); side.wait_stream(torch.cuda.current_stream()); with torch.cuda.stream(side): …',
      },
      { text, example: 'cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking)' },
    ),
    gain: gainOf(
      wall,
      stake,
      `The work consists of ${Math.min(assumedChains, fits)} independent chains of equal length that do not slow each other down (low: everything is dependent).`,
      { low_ms: 0, high_ms: time * (1 - 1 / fits) },
    ),
    confidence: 'low',
    bars: classBars(context, kind, [...new Set(small.map((kernel) => kernel.class))]),
    evidence: [evidence],
    check: checkAgain,
  };
}
