import { doubt } from '../doubt.js';
import type { Rule } from '../rule.js';
import { percent, plural } from '../words.js';
import { capitalize } from '../../../vocabulary/sentence.js';

/** Used share of the KV cache pool from which the next token may find no free block. */
const minFullShare = 0.97;

const countOf = (n: number | null, noun: string): string =>
  n === null ? `an unknown number of ${noun}s` : plural(n, noun);

/** A server or engine that preempts running requests because its KV cache is full. */
export const kvPoolSmall: Rule = {
  id: 'kv_pool_small',
  title: 'KV cache too small',
  docs: {
    finds: 'The KV cache of an engine is full: running requests are preempted, or new ones wait.',
    needs: 'metrics of an engine or server',
    gain: 'None: the metrics do not show the recomputed tokens.',
    change: 'Give the cache more memory, use a smaller KV dtype, or admit fewer or shorter sequences.',
    withheld: 'no preemption, and never 97 % full with requests waiting',
  },
  references: [
    {
      title: 'vLLM: preemption',
      url: 'https://docs.vllm.ai/en/latest/configuration/optimization.html#preemption',
    },
  ],
  async find(context) {
    const { rows, evidence } = await context.evidence<{
      execution_id: string;
      fullest: number | null;
      preempted: number | null;
      waiting: number | null;
    }>(
      `SELECT execution_id, max(value) FILTER (WHERE metric = 'kv_cache_usage_ratio') AS fullest,
         max(value) FILTER (WHERE metric = 'preemptions_total') - min(value) FILTER (WHERE metric = 'preemptions_total') AS preempted,
         max(value) FILTER (WHERE metric = 'requests_waiting') AS waiting
       FROM telemetry WHERE metric IN ('kv_cache_usage_ratio', 'preemptions_total', 'requests_waiting')
       GROUP BY execution_id ORDER BY preempted DESC NULLS LAST, fullest DESC NULLS LAST`,
      (all) =>
        all
          .map(
            (row) =>
              `${row.execution_id}: KV cache up to ${row.fullest === null ? 'an unknown share' : percent(row.fullest)} full, ${countOf(row.preempted, 'preemption')}, up to ${countOf(row.waiting, 'request')} waiting`,
          )
          .join('; '),
    );
    if (rows.every(({ fullest, preempted }) => fullest === null && preempted === null))
      return { outcome: 'not_applicable', why: 'No engine or server reported how full its KV cache was.' };
    const worst = rows.find(
      ({ preempted, fullest, waiting }) =>
        (preempted ?? 0) > 0 || ((fullest ?? 0) >= minFullShare && (waiting ?? 0) > 0),
    );
    if (!worst) {
      const peaks = rows.flatMap(({ fullest }) => fullest ?? []);
      const why = [
        rows.some(({ preempted }) => preempted !== null) ? 'no request was preempted' : null,
        peaks.length > 0 ? `the KV cache was ${percent(Math.max(...peaks))} full at most` : null,
      ];
      return { outcome: 'not_fired', why: `${capitalize(why.filter((text) => text !== null).join('; '))}.` };
    }
    const preempted = worst.preempted ?? 0;
    const why =
      preempted > 0
        ? `${plural(preempted, 'request')} ${preempted === 1 ? 'was' : 'were'} preempted`
        : `it was ${percent(worst.fullest!)} full while up to ${worst.waiting} requests waited`;
    return {
      outcome: 'fired',
      findings: [
        doubt({
          title: `KV cache too small: ${why}`,
          cause:
            'Running sequences grow until the KV cache has no free block: the scheduler preempts some and recomputes their tokens, or queues new ones. Latency and throughput include that repeated prefill.',
          change: {
            kind: 'flag',
            text: 'Give the cache more memory, or admit fewer or shorter sequences: a larger memory share, a smaller KV dtype, fewer concurrent sequences, more GPUs.',
            example: '--gpu-memory-utilization 0.95, --kv-cache-dtype fp8, --max-num-seqs 64',
          },
          evidence: [evidence],
          check: 'repeat the same load; inferscope estimate shows how many sequences fit',
        }),
      ],
    };
  },
};
