import { pointLabel } from '../../../vocabulary/bench.js';
import { plural } from '../../../vocabulary/format.js';
import type { IssueCode } from '../../../model/issue-codes.js';
import { doubt } from '../doubt.js';
import { benchFlagSql } from '../queries/bench-queries.js';
import type { FoundDraft, Rule } from '../rule.js';
import { benchOf } from '../session-analyses.js';

/** Meaning and change of the flags of src/facts/bench/flags.ts that no other rule covers. */
const meanings = {
  low_utilization: {
    name: 'Low utilization',
    cause: 'The device waits while the host prepares the next step: launches, sampling, tokenizing, Python.',
    change: {
      kind: 'flag',
      text: 'Take the host out of the step, or give the device more work per step.',
      example: '--engine-arg mode=cudagraph, or a larger --batch-size',
    },
  },
  no_scaling: {
    name: 'Throughput does not scale',
    cause:
      'Step time grows in proportion to the batch: compute, the KV cache or the host already limits the step.',
    change: {
      kind: 'config',
      text: 'Serve at the smaller batch, or see in its waterfall what limits the larger one.',
      example: 'inferscope run --evaluator nsys,none -- <command at the larger batch>',
    },
  },
  out_of_memory: {
    name: 'Out of memory',
    severity: 'high',
    cause: 'Weights, KV cache and activations of this point need more memory than the device has.',
    change: {
      kind: 'config',
      text: 'Use the largest size that fits, a smaller KV dtype, quantized weights or more GPUs.',
      example: 'inferscope estimate --model <model> --gpu <gpu>',
    },
  },
  throttling: {
    name: 'Throttled',
    cause: 'The clocks were throttled during this point: it would be faster without throttling.',
    change: {
      kind: 'environment',
      text: 'Find the throttle reason, and compare only runs under the same limit.',
      example: 'nvidia-smi -q -d PERFORMANCE,POWER',
    },
  },
} satisfies Partial<Record<IssueCode, Pick<FoundDraft, 'cause' | 'change' | 'severity'> & { name: string }>>;

/** Nothing is launched on a CPU: its threads are the device. */
const lowUtilizationOfCpu: Pick<FoundDraft, 'cause' | 'change'> & { name: string } = {
  name: 'Low utilization',
  cause:
    'Threads of the engine wait for a core that another program uses, or for the slowest of them at the end of each operator.',
  change: {
    kind: 'environment',
    text: 'Stop other programs on this machine, or give the engine fewer threads.',
    example: '--threads <fewer>',
  },
};

/** The same of an engine with one thread: there is none to leave out, and none to wait for. */
const lowUtilizationOfThread: typeof lowUtilizationOfCpu = {
  name: 'Low utilization',
  cause: 'The thread of the engine waits for a core that another program uses.',
  change: { kind: 'environment', text: 'Stop other programs on this machine.', example: null },
};

/** Issues and limits of benchmark points, from the benchmark analysis. */
export const benchmarkFlags: Rule = {
  id: 'benchmark_flags',
  title: 'Flags of a benchmark',
  docs: {
    finds: 'Benchmark flags: points that are unreliable or limited, for reasons that no other rule covers.',
    needs: 'a benchmark (`inferscope bench`)',
    gain: 'None.',
    change: 'Depends on the flag; each finding names it.',
    withheld: 'no point has such a flag',
  },
  references: [],
  async find(context) {
    const bench = await benchOf(context);
    if (!bench) return { outcome: 'not_applicable', why: 'The session has no benchmark.' };
    const flags = bench.data.variants.flatMap(({ flags: variantFlags, points }) => [
      ...variantFlags.map((flag) => ({ point: null as string | null, ...flag })),
      ...points.flatMap(({ point, flags: pointFlags }) => pointFlags.map((flag) => ({ point, ...flag }))),
    ]);
    const findings: FoundDraft[] = [];
    for (const code of Object.keys(meanings) as (keyof typeof meanings)[]) {
      const { device, threads } = context.manifest.workload ?? {};
      const { name, ...about } =
        code === 'low_utilization' && device === 'cpu'
          ? threads === 1
            ? lowUtilizationOfThread
            : lowUtilizationOfCpu
          : meanings[code];
      const matching = flags.filter((flag) => flag.code === code && flag.severity === 'warning');
      const [first, ...others] = matching;
      if (!first) continue;
      const where = first.point === null ? '' : ` at ${pointLabel(first.point)}`;
      const more = others.length > 0 ? ` (and ${plural(others.length, 'similar message')})` : '';
      const points = matching.flatMap(({ point }) => point ?? []);
      const { evidence } = await context.evidence(
        benchFlagSql(code, points.length === matching.length ? points : null),
        // The title has the first.
        () =>
          others.length === 0
            ? `flag ${code}`
            : `flag ${code}; also ${others.map(({ point, text }) => (point === null ? text : `${pointLabel(point)}: ${text}`)).join('; ')}`,
      );
      findings.push(
        doubt({
          title: `${name}${where}: ${first.text}${more}`,
          ...about,
          evidence: [evidence],
          check: 'repeat the benchmark',
        }),
      );
    }
    return findings.length > 0
      ? { outcome: 'fired', findings }
      : { outcome: 'not_fired', why: 'No point of the benchmark is flagged.' };
  },
};
