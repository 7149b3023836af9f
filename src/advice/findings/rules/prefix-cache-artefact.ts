import { doubt } from '../doubt.js';
import type { Rule } from '../rule.js';
import { servingDoubt } from '../serving-doubt.js';
import { formatPercent } from '../../../vocabulary/format.js';

/** Of the prompt tokens: a chat template's common beginning is less. */
const leastShare = 0.05;

/** Prompts that the server had seen before: prefill that was never computed. */
export const prefixCacheArtefact: Rule = {
  id: 'prefix_cache_artefact',
  title: 'Prefix cache in a benchmark',
  docs: {
    finds: "Prompts came from the server's prefix cache, so the benchmark did not measure their prefill.",
    needs: 'a load test, or metrics of a server',
    gain: 'None: it makes the figures doubtful.',
    change: 'Send new prompts, or turn the cache off for the measurement.',
    withheld: 'at most 5 % of the prompt tokens came from a cache',
  },
  references: [
    {
      title: 'vLLM: automatic prefix caching',
      url: 'https://docs.vllm.ai/en/latest/features/automatic_prefix_caching.html',
    },
  ],
  async find(context) {
    const about = {
      cause:
        "Prompt tokens came from the server's prefix cache: their prefill was not computed, so TTFT and throughput are those of a shorter prompt.",
      change: {
        kind: 'flag' as const,
        text: 'Send fresh prompts, or turn the cache off for the measurement; where hits are the real traffic, say so next to the figures.',
        example: 'vllm serve --no-enable-prefix-caching, or leave --seed out',
      },
      check: 'the same load with another --seed: cached tokens must be near 0',
    };
    const served = await servingDoubt(context, ['prefix_cache_carry_over', 'seed_repeated'], {
      name: 'Prefix cache',
      ...about,
    });
    if (served.outcome !== 'not_applicable') return served;
    const { rows, evidence } = await context.evidence<{ cached: number; input: number; requests: number }>(
      `SELECT sum(cached_tokens)::DOUBLE AS cached, sum(input_tokens)::DOUBLE AS input, count(*) AS requests
       FROM requests WHERE status = 'ok' AND NOT coalesce(warmup, false) AND cached_tokens IS NOT NULL AND input_tokens IS NOT NULL`,
      ([all]) =>
        `${all?.cached ?? 0} of ${all?.input ?? 0} prompt tokens of ${all?.requests ?? 0} requests were cached`,
    );
    const [all] = rows;
    if (!all?.requests || !all.input)
      return {
        outcome: 'not_applicable',
        why: 'No server reported which prompt tokens came from its cache.',
      };
    const share = all.cached / all.input;
    if (share <= leastShare)
      return {
        outcome: 'not_fired',
        why: `${formatPercent(share)} of the prompt tokens came from a cache.`,
      };
    return {
      outcome: 'fired',
      findings: [
        doubt({
          title: `Prefix cache: ${formatPercent(share)} of the prompt tokens were not computed`,
          evidence: [evidence],
          ...about,
        }),
      ],
    };
  },
};
