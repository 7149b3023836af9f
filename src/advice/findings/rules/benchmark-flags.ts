import { doubt } from '../doubt.js';
import { benchFlagSql } from '../queries/bench-queries.js';
import type { FoundDraft, Rule } from '../rule.js';
import { benchOf } from '../session-analyses.js';

/** Flags of src/facts/bench/flags.ts that no rule of their own speaks of: what each means and what to do. */
const meanings: Record<string, Pick<FoundDraft, 'cause' | 'change'> & { name: string }> = {
  low_utilization: {
    name: 'Low utilisation',
    cause: 'The device waits while the host prepares the next step: launches, sampling, tokenising, Python.',
    change: {
      kind: 'flag',
      text: 'Take the host out of the step, or give the device more work a step.',
      example: '--engine-arg mode=cudagraph, or a larger --batch-size',
    },
  },
  no_scaling: {
    name: 'Throughput does not scale',
    cause:
      'A larger batch adds time in proportion: compute, the KV cache or the host is already what a step waits for.',
    change: {
      kind: 'config',
      text: 'Serve at the smaller batch, or find what the larger one waits for in its waterfall.',
      example: 'inferscope run --evaluator nsys,none -- <command at the larger batch>',
    },
  },
  out_of_memory: {
    name: 'Out of memory',
    cause: 'Weights, KV cache and activations of this point need more than the device has.',
    change: {
      kind: 'config',
      text: 'Take the largest size that fits, a smaller KV dtype, quantised weights or more GPUs.',
      example: 'inferscope estimate --model <model> --gpu <gpu>',
    },
  },
  throttling: {
    name: 'Throttled',
    cause:
      'The clocks were throttled while this point was measured: it would be faster on a GPU that is not throttled.',
    change: {
      kind: 'environment',
      text: 'See what the limit is, and compare only runs that met the same.',
      example: 'nvidia-smi -q -d PERFORMANCE,POWER',
    },
  },
};

/** What makes points of a benchmark doubtful or limits them, as its own analysis says it. */
export const benchmarkFlags: Rule = {
  id: 'benchmark_flags',
  title: 'Flags of a benchmark',
  docs: {
    finds:
      'Flags of a benchmark: points that are doubtful or limited, for reasons that no other rule covers.',
    needs: 'a benchmark (`inferscope bench`)',
    gain: 'None.',
    change: 'Depends on the flag; each finding names it.',
    withheld: 'no point has such a flag',
  },
  references: [],
  async find(context) {
    const bench = await benchOf(context);
    if (!bench) return { outcome: 'not_applicable', why: 'The session holds no benchmark.' };
    const flags = bench.data.variants.flatMap(({ flags: own, points }) => [
      ...own.map((flag) => ({ point: null as string | null, ...flag })),
      ...points.flatMap(({ point, flags: of }) => of.map((flag) => ({ point, ...flag }))),
    ]);
    const findings: FoundDraft[] = [];
    for (const [code, { name, ...about }] of Object.entries(meanings)) {
      const own = flags.filter((flag) => flag.code === code && flag.severity === 'warning');
      const [first] = own;
      if (!first) continue;
      const where = first.point === null ? '' : `at ${first.point} `;
      const more = own.length > 1 ? `, and ${own.length - 1} more` : '';
      const points = own.flatMap(({ point }) => point ?? []);
      const { evidence } = await context.evidence(
        benchFlagSql(code, points.length === own.length ? points : null),
        () => own.map(({ point, text }) => (point === null ? text : `${point}: ${text}`)).join('; '),
      );
      findings.push(
        doubt({
          title: `${name}: ${where}${first.text}${more}`,
          ...about,
          evidence: [evidence],
          check: 'the same benchmark again',
        }),
      );
    }
    return findings.length > 0
      ? { outcome: 'fired', findings }
      : { outcome: 'not_fired', why: 'No point of the benchmark is flagged.' };
  },
};
