import { doubt } from '../doubt.js';
import type { Rule } from '../rule.js';
import { servingDoubt } from '../serving-doubt.js';
import { formatPercent } from '../../../vocabulary/format.js';

/** Share of the prompt tokens: more than the common prefix of a chat template. */
const minShare = 0.05;

/** Prompts served from the prefix cache: their prefill was not computed. */
export const prefixCacheArtifact: Rule = {
  id: 'prefix_cache_artifact',
  title: 'Prefix cache in a benchmark',
  docs: {
    finds: "Prompts came from the server's prefix cache, so the benchmark did not measure their prefill.",
    needs: 'a load test, or metrics of a server',
    gain: 'None: it makes the numbers unreliable.',
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
        "Prompt tokens came from the server's prefix cache: their prefill was not computed, so TTFT and throughput correspond to shorter prompts.",
      change: {
        kind: 'flag' as const,
        text: 'Send fresh prompts, or turn the cache off for the measurement; if hits are part of the real traffic, state it with the numbers.',
        example: 'vllm serve --no-enable-prefix-caching, or omit --seed',
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
        why: 'No server reported cached prompt tokens.',
      };
    const share = all.cached / all.input;
    if (share <= minShare)
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
