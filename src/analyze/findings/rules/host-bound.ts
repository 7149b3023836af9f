import { idleCauses } from '../idle-causes.js';
import { longHostNs } from '../finding-tables.js';
import { program } from '../operators/program.js';
import type { FindingContext, FoundDraft, Rule } from '../rule.js';
import type { StageFacts } from '../stage-facts.js';
import { leastShare, stageRule } from '../stage-rule.js';
import { aStage, count, everyStage, ms, part } from '../words.js';

/** The device waits while the program computes on the host: Python between steps, a tokenizer, sampling, the GIL. */
export const hostBound: Rule = stageRule(
  {
    id: 'host_bound',
    title: 'CPU-bound host',
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
    const { host } = idleCauses(stage);
    return host >= leastShare * stage.wall_ms
      ? finding(context, stage, host)
      : `the device waits ${part(host, stage.wall_ms)} of the time for single stretches of the host over ${longHostNs / 1000} µs`;
  },
  program,
);

async function finding(context: FindingContext, stage: StageFacts, host: number): Promise<FoundDraft> {
  const { kind, wall_ms: wall, busy_ms: busy } = stage;
  const places = await context.evidence<Place>(stretchesSql(kind), (rows) =>
    rows
      .slice(0, 3)
      .map(
        (row) =>
          `${row.inside ? 'inside' : 'before'} ${row.place}: ${row.stretches} stretches, ${ms(row.ms)}`,
      )
      .join('; '),
  );
  const sum = (rows: readonly Place[]) => rows.reduce((total, row) => total + row.ms, 0);
  const inside = places.rows.filter((row) => row.inside);
  const ofOperators = sum(inside) > sum(places.rows) / 2;
  const [first] = ofOperators ? inside : places.rows;
  const stretches = `in stretches of ${ms(host / Math.max(stage.long_hosts, 1e-3))}`;
  return {
    stage: kind,
    title: `CPU-bound host: the device waits ${part(host, wall)} of ${everyStage(kind)} for ${ofOperators ? `the host inside ${first!.place}` : 'the program itself'}, ${count(Math.max(stage.long_hosts, 0.1))} times`,
    at_stake_ms: host,
    cause: `${aStage(kind)} takes ${ms(wall)}, of which the device works ${ms(busy)}. For ${ms(host)} the host launches nothing and waits for nothing: it computes, ${stretches}${first ? `, ${ofOperators ? 'most of it inside' : 'before'} ${first.place}` : ''}. ${ofOperators ? whyInside : whyOutside}`,
    change: ofOperators ? changeInside : changeOutside,
    gain: {
      expected_ms: host,
      low_ms: 0.7 * host,
      high_ms: host,
      after_ms: wall - host,
      assumption: 'The work overlaps with the device or is gone; launches stay as they are.',
      what_if: null,
    },
    confidence: 'high',
    removes: 'idle',
    bars: context.waterfalls
      .find((one) => one.kind === kind)
      ?.bars.map(({ id }) => id)
      .filter((id) => id === 'host' || id.startsWith('host.')) ?? ['host'],
    evidence: [places.evidence],
    check: 'inferscope run --evaluator none,nsys -- <the changed command>, then inferscope explain --verify',
  };
}

/** One place in the program at which the device waits for long. */
type Place = { place: string; inside: boolean; stretches: number; ms: number };

const whyOutside =
  'That is Python, tokenising, sampling or building inputs on the CPU, or waiting for the interpreter lock.';
const changeOutside: FoundDraft['change'] = {
  kind: 'code',
  text: 'Move this work off the path between two launches: into a thread or process of its own (the interpreter lock held by one keeps the other waiting), onto the GPU, or prepare the next step while the device runs this one.',
  example:
    'py-spy record --gil -- <command>, or inferscope run --evaluator torch -- <command>: which function it is',
};

/** A dispatch takes microseconds: an operator that takes longer prepares something first. */
const whyInside =
  "An operator's dispatch takes microseconds: this one prepares something first, such as a plan or kernel for sizes that it has not met, the choice of an algorithm, or memory.";
const changeInside: FoundDraft['change'] = {
  kind: 'code',
  text: 'Let it meet the same sizes again (a static KV cache, padding to a few lengths), warm every size up before serving, or choose another backend for this operator.',
  example:
    'with torch.nn.attention.sdpa_kernel(SDPBackend.FLASH_ATTENTION): …  # where cuDNN plans attention anew for every length',
};

/** Long stretches by what the host launched after them, and whether they lie inside that operator. */
function stretchesSql(kind: string): string {
  const where = kind === 'outside' ? '' : ` AND g.phase IN ('${kind}', 'sampling')`;
  return `SELECT coalesce(o.name, s.raw_name, 'code outside all ranges') AS place,
            coalesce(o.begin_ns < g.start_ns + coalesce(g.synchronization_ns, 0) + g.host_ns / 2, false) AS inside,
            count(*) AS stretches, round(sum(g.host_ns) / 1e6, 3) AS ms, round(max(g.host_ns) / 1e6, 3) AS longest_ms
     FROM focus_gaps g LEFT JOIN (SELECT op_id, name, start_ns AS begin_ns FROM own_ops) o ON o.op_id = g.before_op_id
     LEFT JOIN (SELECT stage_id, raw_name FROM focus_stages) s ON s.stage_id = g.stage_id
     WHERE g.host_ns > ${longHostNs}${where} GROUP BY ALL ORDER BY ms DESC, place`;
}
