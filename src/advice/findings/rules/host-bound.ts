import { type IdleCauses, idleCauses, stretchesOfDispatch } from '../idle-causes.js';
import { longHostNs } from '../finding-tables.js';
import { longStretches, type Place, placeWords } from '../long-stretches.js';
import { program } from '../operators/program.js';
import type { FindingContext, FoundDraft, Rule } from '../rule.js';
import { runDelay } from '../run-delay.js';
import type { StageFacts } from '../stage-facts.js';
import { barsOf, checkAgain, leastShare, stageRule } from '../stage-rule.js';
import { aStage, everyStage, ms, part, times } from '../words.js';

/** The device waits while the program computes on the host: Python between steps, a tokenizer, sampling, the GIL. */
export const hostBound: Rule = stageRule(
  {
    id: 'host_bound',
    title: 'CPU-bound host',
    docs: {
      finds:
        'The GPU is idle while the program computes on the host: Python, a tokenizer, sampling, the interpreter lock.',
      needs: "a GPU timeline (nsys or PyTorch's profiler), or PyTorch's operators of a program without a GPU",
      gain: "The idle time in long host stretches, without the model's own launch code and without time waiting for a CPU core; low end 70 % of it.",
      change:
        'Move that work to another thread or process, onto the GPU, or prepare the next step while the GPU works.',
      withheld: 'less than 5 % of the stage at stake, or the machine was busy with other processes',
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
    // What the launching thread waited for a core is not the program's own computing: preempted_host has it.
    const waited = (await runDelay(context, stage))?.delay_ms ?? 0;
    const host = Math.max(0, causes.host - glueOf(stage, causes) - waited);
    return host >= leastShare * stage.wall_ms
      ? finding(context, stage, host)
      : `the device waits ${part(host, stage.wall_ms)} of the time for single stretches of the host over ${longHostNs / 1000} µs`;
  },
  program,
);

/** The model's own Python between two launches, where it is launching that holds the stage up: launch_bound has it. */
function glueOf(stage: StageFacts, causes: IdleCauses): number {
  const launchBound = causes.launch >= leastShare * stage.wall_ms;
  return launchBound && stretchesOfDispatch(stage.inside_ms, causes) > 0
    ? Math.min(causes.host, stage.inside_ms - stage.prepared_ms - stage.inside_compile_ms)
    : 0;
}

async function finding(context: FindingContext, stage: StageFacts, host: number): Promise<FoundDraft> {
  const { kind, wall_ms: wall, busy_ms: busy, long_hosts: stretches } = stage;
  const { places, evidence } = await longStretches(context, stage);
  const sum = (rows: readonly Place[]) => rows.reduce((total, row) => total + row.ms, 0);
  const inside = places.filter(({ relation }) => relation === 'inside');
  const ofOperators = sum(inside) > sum(places) / 2;
  const [first] = ofOperators ? inside : places;
  // One place with most of the time tells how often and how long; else all stretches together.
  const usual = first && first.ms > sum(places) / 2 ? first : { per_instance: stretches, ms: host };
  const each = Math.min(usual.ms, host) / Math.max(usual.per_instance, 1e-3);
  const whose = ofOperators
    ? `the host inside ${first!.place}`
    : first?.relation === 'within' && first.ms > sum(places) / 2
      ? `the program within its range ${first.place}`
      : 'the program itself';
  return {
    stage: kind,
    noise: true,
    title: `CPU-bound host: the device waits ${part(host, wall)} of ${everyStage(kind)} for ${whose}, ${times(Math.max(usual.per_instance, 0.1))}`,
    at_stake_ms: host,
    cause: `${aStage(kind)} takes ${ms(wall)}, of which the device works ${ms(busy)}. For ${ms(host)} the host launches nothing and waits for nothing: it computes, in stretches of ${ms(each)}${first ? `, most of it ${placeWords(first)}` : ''}. ${ofOperators ? whyInside : whyOutside}`,
    change: ofOperators ? changeInside(first!.place) : changeOutside,
    gain: {
      expected_ms: host,
      low_ms: 0.7 * host,
      high_ms: host,
      after_ms: wall - host,
      assumption: ofOperators
        ? 'What the operator prepares is kept for the next time; launches stay as they are.'
        : 'The work overlaps with the device or is gone; launches stay as they are.',
      what_if: null,
    },
    confidence: 'high',
    removes: 'idle',
    bars: barsOf(context, kind, ['host']),
    evidence: [evidence],
    check: checkAgain,
  };
}

const whyOutside =
  'That is Python, tokenising, sampling or building inputs on the CPU, reading files, or waiting for the interpreter lock.';
const changeOutside: FoundDraft['change'] = {
  kind: 'code',
  text: 'Move this work off the path between two launches: into a thread or process of its own (the interpreter lock held by one keeps the other waiting), onto the GPU, or prepare the next step while the device runs this one.',
  example:
    'py-spy record --gil -- <command>, or inferscope run --evaluator torch -- <command>: which function it is',
};

/** A dispatch takes microseconds: an operator that takes longer prepares something first. */
const whyInside =
  "An operator's dispatch takes microseconds: this one prepares something first, such as a plan or kernel for sizes that it has not met, the choice of an algorithm, or memory.";

function changeInside(operator: string): FoundDraft['change'] {
  return {
    kind: 'code',
    text: 'Let it meet the same sizes again (a static KV cache, padding to a few lengths), warm every size up before serving, or choose another backend for this operator.',
    example: preparing.find(([names]) => names.test(operator))?.[1] ?? null,
  };
}

/** What keeps operators of a kind from preparing anew; of others nothing is known that holds for all. */
const preparing: readonly [RegExp, string][] = [
  [
    /attention|sdpa/i,
    'with torch.nn.attention.sdpa_kernel(SDPBackend.FLASH_ATTENTION): …  # where cuDNN plans attention anew for every length',
  ],
  [
    /conv/i,
    'torch.backends.cudnn.benchmark = False  # True tries every algorithm on each size that it has not met',
  ],
];
