import { gainOf } from '../gain.js';
import {
  type IdleCauses,
  idleCauses,
  isLaunchBound,
  minLaunches,
  stretchesOfDispatch,
} from '../idle-causes.js';
import { engineHostChange, isSharedOnly } from '../launch-changes.js';
import { longHostNs } from '../finding-tables.js';
import { longStretches, type HostStretch, placeWords } from '../long-stretches.js';
import { findProgramTime } from '../operators/program.js';
import type { FindingContext, FoundDraft, Rule } from '../rule.js';
import { runDelay } from '../run-delay.js';
import type { StageFacts } from '../stage-facts.js';
import { barsOf, checkAgain, minShare, stageRule } from '../stage-rule.js';
import { stageShape } from '../stage-shape.js';
import { instanceWord, everyInstance, meanCount, ms, part } from '../words.js';
import { interval95, mean, standardDeviation } from '../../../model/statistics.js';
import { formatSetting } from '../../../vocabulary/format.js';

/** The device waits while the program computes on the host: Python between steps, a tokenizer, sampling, the GIL. */
export const hostBound: Rule = stageRule(
  {
    id: 'host_bound',
    title: 'CPU-bound host',
    docs: {
      finds:
        'The GPU is idle while the program computes on the host: Python, a tokenizer, sampling, the interpreter lock.',
      needs: "a GPU timeline (nsys or PyTorch's profiler), or PyTorch's operators of a program without a GPU",
      gain: "The idle time in long host stretches (of a stage with fewer than 20 launches: in all between launches), without the model's own launch code and without time waiting for a CPU core; low end 70 % of it. For an engine that schedules ahead already: per token, half of it with twice as many sequences per step.",
      change:
        'Move that work to another thread or process, onto the GPU, or prepare the next step while the GPU works.',
      withheld:
        'less than 5 % of the stage is affected, or the machine was busy with other processes, except for what they do not cause: without a GPU, the time that nearly every step takes, and that in which the main thread sleeps (sampled by `inferscope run`)',
    },
    references: [
      {
        title: 'PyTorch Performance Tuning Guide',
        url: 'https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html',
      },
      {
        title: 'vLLM: optimization and tuning (CPU overhead)',
        url: 'https://docs.vllm.ai/en/latest/configuration/optimization.html',
      },
    ],
  },
  async (context, stage) => {
    const causes = idleCauses(stage);
    // Time in which the launching thread waited for a core is not computation: it belongs to preempted_host.
    const waited = (await runDelay(context, stage))?.delay_ms ?? 0;
    const long = Math.max(0, causes.host - glueOf(stage, causes) - waited);
    // Few launches do not make a stage launch-bound: what the device waits for is the program between them.
    const short = stage.launches < minLaunches ? causes.launch : 0;
    const [host, minNs] = short >= minShare * stage.wall_ms ? [long + short, 0] : [long, longHostNs];
    if (host < minShare * stage.wall_ms) {
      return `the device waits ${part(host, stage.wall_ms)} of the time for host gaps over ${formatSetting(minNs / 1e6, 'ms')}`;
    }
    return (await rareHostGaps(context, stage, minNs)) ?? finding(context, stage, host, minNs);
  },
  findProgramTime,
);

/**
 * Why host gaps do not show a typical cost: at most half of the recorded instances have them, too few to exclude a mean
 * of zero.
 * @returns null if they recur
 */
async function rareHostGaps(
  { scope }: FindingContext,
  { kind, instances }: StageFacts,
  minNs: number,
): Promise<string | null> {
  if (!scope || instances < 2) return null;
  const rows = await scope.database.query<{ ns: number }>(
    minNs > 0
      ? `SELECT sum(ns)::DOUBLE AS ns FROM finding_long_hosts WHERE kind = '${kind}' AND cause = 'host' GROUP BY stage_id`
      : `SELECT host::DOUBLE AS ns FROM window_idle WHERE kind = '${kind}' AND host > 0`,
  );
  if (rows.length > instances / 2) return null;
  const each = [...rows.map(({ ns }) => ns), ...Array.from({ length: instances - rows.length }, () => 0)];
  const [low] = interval95(mean(each), standardDeviation(each), instances);
  return low > 0
    ? null
    : `host gaps${minNs > 0 ? ` over ${formatSetting(minNs / 1e6, 'ms')}` : ''} are in ${rows.length} of ${instances} instances, which may be chance`;
}

/**
 * Time of the model's own Python between two launches that another rule explains: launch_bound, or synchronization_every_step if the
 * host needs less time than the device (without its waits it would run ahead, which would hide this time).
 */
function glueOf(stage: StageFacts, causes: IdleCauses): number {
  const launchBound = isLaunchBound(stage, causes, minShare) && stretchesOfDispatch(stage, causes) > 0;
  const wouldRunAhead = stage.wall_ms - stage.waits.synchronize.ms - stage.waits.read.ms < stage.busy_ms;
  return launchBound || wouldRunAhead
    ? Math.min(causes.host, stage.inside_ms - stage.prepared_ms - stage.inside_compile_ms)
    : 0;
}

/** @param minNs gaps that are counted are longer than this */
async function finding(
  context: FindingContext,
  stage: StageFacts,
  host: number,
  minNs: number,
): Promise<FoundDraft> {
  const { kind, wall_ms: wall, busy_ms: busy } = stage;
  const { places, evidence } = await longStretches(context, stage, minNs);
  const stretches = places.reduce((total, { per_instance }) => total + per_instance, 0);
  const sum = (rows: readonly HostStretch[]) => rows.reduce((total, row) => total + row.ms, 0);
  const inside = places.filter(({ relation }) => relation === 'inside');
  const mostlyOperators = sum(inside) > sum(places) / 2;
  const [first] = mostlyOperators ? inside : places;
  // The length comes from a place with most of the time, else from all gaps together.
  const usual = first && first.ms > sum(places) / 2 ? first : { per_instance: stretches, ms: host };
  const each = Math.min(usual.ms, host) / Math.max(usual.per_instance, 1e-3);
  const onePlace = mostlyOperators
    ? `the host inside ${first!.place}`
    : first?.relation === 'within' && first.ms > sum(places) / 2
      ? `the program within its range ${first.place}`
      : null;
  const gaps = onePlace === null ? stretches : usual.per_instance;
  return {
    stage: kind,
    noise: true,
    title: (share) =>
      `CPU-bound host: the device waits ${share} of ${everyInstance(kind)} for ${onePlace ?? 'the program itself'}${gaps < 0.95 ? '' : `, in ${meanCount(gaps, 'gap', minNs > 0 ? ` over ${formatSetting(minNs / 1e6, 'ms')}` : '')}`}`,
    at_stake_ms: host,
    cause: `${instanceWord(kind)} takes ${ms(wall)}; the device is busy for ${ms(busy)}. For ${ms(host)} ${minNs > 0 ? 'the host neither launches nor waits: it computes' : 'it waits for the host between its few launches'}${first ? `, mostly ${placeWords(first)}` : ''}, ${ms(each)} at a time. ${mostlyOperators ? whyInside : whyOutside}`,
    change: mostlyOperators
      ? changeInside(first!.place!)
      : ((await engineHostChange(context)) ?? changeOutside),
    gain:
      !mostlyOperators && (await isSharedOnly(context))
        ? await sharedGain(context, stage, host)
        : gainOf(
            wall,
            host,
            mostlyOperators
              ? "The operator's preparation is cached for the next call; launches take as long as now."
              : 'The work overlaps with the device or is removed; launches take as long as now.',
          ),
    confidence: 'high',
    removes: 'idle',
    bars: barsOf(
      context,
      kind,
      minNs > 0 ? ['host'] : ['host', 'launch_overhead', 'launch_latency', 'synchronization'],
    ),
    evidence: [evidence],
    check: checkAgain,
  };
}

/** The gain of twice as many sequences per step, which share the time of the host; null if their number is not known. */
async function sharedGain(
  context: FindingContext,
  { kind, wall_ms: wall }: StageFacts,
  host: number,
): Promise<FoundDraft['gain']> {
  const batch = (await stageShape(context, kind))?.batchSize ?? null;
  if (batch === null) return null;
  const expected_ms = host / batch / 2;
  return {
    per: 'token',
    expected_ms,
    low_ms: 0.7 * expected_ms,
    high_ms: host / batch,
    after_ms: wall / batch - expected_ms,
    assumption: `Twice as many sequences per step share this time, which stays as it is: per sequence it is ${ms(host / batch)} now. Steps do not become shorter.`,
    what_if: null,
  };
}

const whyOutside =
  'This is Python code, tokenizing, sampling or building inputs on the CPU, reading files, or waiting for the interpreter lock.';
const changeOutside: FoundDraft['change'] = {
  kind: 'code',
  text: 'Move this work out of the path between two launches: into its own process (threads share the interpreter lock), onto the GPU, or prepare the next step while the device runs this one.',
  example:
    'py-spy record --gil -- <command>, or inferscope run --evaluator torch -- <command>: shows the function',
};

/** A dispatch takes microseconds: an operator that takes longer does some preparation first. */
const whyInside =
  "An operator's dispatch takes microseconds: this one does preparation first, such as planning or compiling for new sizes, choosing an algorithm, or allocating memory.";

function changeInside(operator: string): FoundDraft['change'] {
  return {
    kind: 'code',
    text: 'Use recurring sizes (a static KV cache, padding to a few lengths), warm up every size before serving, or choose another backend for this operator.',
    example: preparationExamples.find(([names]) => names.test(operator))?.[1] ?? null,
  };
}

/** Examples that avoid repeated preparation, by kind of operator. */
const preparationExamples: readonly [RegExp, string][] = [
  [
    /attention|sdpa/i,
    'with torch.nn.attention.sdpa_kernel(SDPBackend.FLASH_ATTENTION): …  # if cuDNN plans attention again for every length',
  ],
  [/conv/i, 'torch.backends.cudnn.benchmark = False  # True benchmarks every algorithm for each new size'],
];
