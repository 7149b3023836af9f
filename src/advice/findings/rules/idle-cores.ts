import { doubt } from '../doubt.js';
import { checkProfile, engineRule, stageSql } from '../engine-rule.js';
import { boundOfStage } from '../session-analyses.js';

/** Only if prefill is compute-bound: more threads may not help if memory is the limit. */
export const idleCores = engineRule(
  {
    id: 'idle_cores',
    title: 'Idle cores',
    docs: {
      finds: 'Prefill is compute-bound, and some usable cores do not compute.',
      needs: 'a session of `inferscope profile`',
      gain: 'None: the effect of more threads depends on the load of the machine.',
      change: 'Try more `--threads`, and compare the spread as well as the time.',
      withheld: 'prefill is not compute-bound, or all cores compute',
    },
    references: [],
    noise: true,
  },
  async (context, { kind }) => {
    if (kind !== 'prefill') return ['judged for prefill only'];
    const { workload, hardware } = context.manifest;
    const cores = hardware['cpu_usable_cores'];
    const threads = workload?.threads ?? null;
    if (threads === null || typeof cores !== 'number') return ['threads or usable cores are not known'];
    if ((await boundOfStage(context, kind)) !== 'compute') return ['not compute-bound'];
    if (threads >= cores) return [`all ${cores} usable cores compute`];
    const { evidence } = await context.evidence(
      stageSql(kind),
      () => `${threads} of ${cores} usable cores compute`,
    );
    return [
      doubt({
        stage: kind,
        title: `Idle cores: prefill is compute-bound, and ${threads} of ${cores} usable cores compute`,
        cause:
          threads === cores - 1
            ? 'One core is left to the system by default, for stable times.'
            : `--threads ${threads} leaves the others idle.`,
        change: {
          kind: 'flag',
          text: `Try --threads ${cores}, and compare the spread as well as the time.`,
          example: `--threads ${cores}`,
        },
        confidence: 'medium',
        bars: [],
        evidence: [evidence],
        check: checkProfile,
      }),
    ];
  },
);
