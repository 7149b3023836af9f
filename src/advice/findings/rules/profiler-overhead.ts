import { doubt } from '../doubt.js';
import { stepTimesSql, windowTimesSql } from '../queries/stage-queries.js';
import type { FoundDraft, Rule } from '../rule.js';
import { instancesOf, instanceWord, ms, percent } from '../words.js';
import { formatMs, formatSigned } from '../../../vocabulary/format.js';

const timeWords = (where: string, kind: string, { instances, mean_ms: mean }: Times): string =>
  `${where}: ${instancesOf(instances, kind)} of ${ms(mean)}${instances === 1 ? '' : ' on average'}`;

interface Times extends Record<string, string | number> {
  instances: number;
  mean_ms: number;
}

/** What recording makes longer, and how to record less of it. */
interface Words {
  cause: string;
  change: { text: string; example: string | null };
}

const gpuWords = (tool = ''): Words => ({
  cause:
    'Recording costs the host microseconds per launch and call, so a stage with many short kernels waits longer for the host: kernel times are valid, host and launch times are too long.',
  change: /nsys|nsight systems/i.test(tool)
    ? {
        text: 'Read host and launch times from the clean execution; the waterfall shows what the profiler added as a bar of its own. nsys has the lowest overhead of a timeline profiler; record a shorter range or fewer launches to reduce it.',
        example: null,
      }
    : {
        text: 'Read host and launch times from the clean execution, record less (no operator shapes or stacks, a shorter range), or use a tool with less overhead.',
        example: 'inferscope run --evaluator none,nsys -- <command>',
      },
});

/** Without kernels no recorded time is free of the overhead, and nsys records no operators. */
const hostWords: Words = {
  cause:
    'Recording costs the host microseconds per operator and call, so a stage with many short ones takes longer: all times under the profiler are too long.',
  change: {
    text: 'Read times from the clean execution, or record less (no operator shapes or stacks, a shorter range).',
    example: null,
  },
};

/** Share of the clean time: above it, profiler overhead dominates the capture. */
const minShare = 0.25;

/** Stages took much longer under the profiler than without it. */
export const profilerOverhead: Rule = {
  id: 'profiler_overhead',
  title: 'Profiler overhead',
  docs: {
    finds: 'Stages took much longer under the profiler than without it.',
    needs: 'a clean and a profiled execution (`--evaluator none,nsys`)',
    gain: 'None: it makes host times of the capture unreliable.',
    change: 'Read host times from the clean execution, record less, or use a lighter tool.',
    withheld: 'the profiler adds less than 25 %',
  },
  references: [],
  async find(context) {
    const { waterfalls, scope } = context;
    const overheads = waterfalls.flatMap((waterfall) => {
      const { measured_ms: measured, clean_ms: clean, kind } = waterfall;
      if (measured.value === null || clean.value === null || clean.value <= 0 || kind === 'request')
        return [];
      return [
        {
          waterfall,
          kind,
          measured: measured.value,
          clean: clean.value,
          share: measured.value / clean.value - 1,
        },
      ];
    });
    if (overheads.length === 0)
      return {
        outcome: 'not_applicable',
        why: 'The session has no clean execution of the same workload (--evaluator none,nsys makes one).',
      };
    const heavy = overheads.filter(({ share }) => share >= minShare);
    if (heavy.length === 0) {
      const worst = overheads.toSorted((a, b) => b.share - a.share)[0]!;
      return {
        outcome: 'not_fired',
        why: `The profiler adds ${percent(Math.max(0, worst.share))} to ${worst.kind} at most.`,
      };
    }
    const recorder = context.manifest.captures.find(
      ({ capture_id }) => capture_id === scope?.source.attribution.capture_id,
    );
    const words = scope?.source.gpu_used ? gpuWords(recorder?.tool.name) : hostWords;
    const findings: FoundDraft[] = [];
    for (const { waterfall, kind, measured, clean: unprofiled, share } of heavy) {
      const bar = waterfall.bars.find(({ id }) => id === 'profiler_overhead');
      const text = `${instanceWord(kind)} takes ${formatMs(measured)} under the profiler and ${formatMs(unprofiled)} without`;
      const evidenceOf = async (where: string, sql: string) => {
        const { evidence } = await context.evidence<Times>(sql, (rows) =>
          // A stage that is marked on several threads of a capture has equal rows.
          [...new Set(rows.map((row) => timeWords(where, kind, row)))].join('; '),
        );
        return evidence;
      };
      const rank = scope?.source.focus.rank ?? null;
      const clean = scope?.source.timing?.execution_id ?? 'clean';
      const profiled = waterfall.execution_id;
      const profiledSql = scope ? windowTimesSql([kind]) : stepTimesSql([kind], [profiled], rank);
      findings.push(
        doubt({
          stage: kind,
          title: `Profiler overhead: ${text} (${formatSigned(share, 'ratio')})`,
          cause: words.cause,
          change: { kind: 'capture', ...words.change },
          bars: bar ? ['profiler_overhead'] : [],
          evidence: [
            await evidenceOf(
              `without the profiler (execution ${clean})`,
              stepTimesSql([kind], [clean], rank),
            ),
            await evidenceOf(`under the profiler (execution ${profiled})`, profiledSql),
          ],
          check: 'the bar "added by the profiler" in the waterfall of the new session',
        }),
      );
    }
    return { outcome: 'fired', findings };
  },
};
