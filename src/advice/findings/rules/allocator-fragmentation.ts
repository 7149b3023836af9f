import { doubt } from '../doubt.js';
import type { Rule } from '../rule.js';
import { formatBytes, formatPercent } from '../../../vocabulary/format.js';

/** Minimum unused share of reserved memory: the allocator keeps some free blocks by design. */
const minShare = 0.2;
const minBytes = 512 * 2 ** 20;

/** Memory that the framework's allocator reserves but no tensor uses, when the reserve is largest. */
export const allocatorFragmentation: Rule = {
  id: 'allocator_fragmentation',
  title: 'Memory reserved by the allocator but unused',
  docs: {
    finds: "The framework's allocator reserves memory that no tensor uses.",
    needs: 'reserved and allocated memory at the same time (`inferscope memory`, records)',
    gain: 'None in time; the bytes are stated.',
    change: 'Let segments grow in place (`expandable_segments:True`), and allocate the KV cache once.',
    withheld: 'less than 20 % of the reserve, or less than 512 MiB',
  },
  references: [
    {
      title: 'PyTorch: optimizing memory usage with PYTORCH_CUDA_ALLOC_CONF',
      url: 'https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf',
    },
  ],
  async find(context) {
    const { rows, evidence } = await context.evidence<{
      execution_id: string;
      device: number;
      reserved: number;
      allocated: number;
    }>(
      `WITH memory_moment AS (
         SELECT execution_id, rank, device, coalesce(point, t_ns::VARCHAR) AS moment,
           max(bytes) FILTER (WHERE kind = 'reserved') AS reserved, max(bytes) FILTER (WHERE kind = 'allocated') AS allocated
         FROM memory WHERE kind IN ('reserved', 'allocated') AND device IS NOT NULL GROUP BY ALL)
       SELECT execution_id, device, max(reserved) AS reserved, arg_max(allocated, reserved) AS allocated FROM memory_moment
       WHERE reserved IS NOT NULL AND allocated IS NOT NULL GROUP BY execution_id, device
       ORDER BY max(reserved) - arg_max(allocated, reserved) DESC`,
      ([largest]) =>
        largest
          ? `GPU ${largest.device}: ${formatBytes(largest.reserved)} reserved, ${formatBytes(largest.allocated)} of it allocated`
          : 'never recorded at the same time',
    );
    const [worst] = rows;
    if (!worst)
      return {
        outcome: 'not_applicable',
        why: 'Reserved and allocated memory were not recorded at the same time.',
      };
    const unused = worst.reserved - worst.allocated;
    const share = unused / worst.reserved;
    if (share < minShare || unused < minBytes)
      return {
        outcome: 'not_fired',
        why: `${formatBytes(unused)} of ${formatBytes(worst.reserved)} reserved memory is unused (${formatPercent(share)}).`,
      };
    return {
      outcome: 'fired',
      findings: [
        doubt({
          title: `Fragmented memory: ${formatBytes(unused)} of ${formatBytes(worst.reserved)} reserved on GPU ${worst.device} is unused (${formatPercent(share)})`,
          cause:
            'The caching allocator cannot reuse freed blocks for other sizes (growing KV caches, varying prompt lengths), so it allocates more from the driver: memory runs out before tensors fill it, and each new segment costs a synchronizing cudaMalloc.',
          change: {
            kind: 'environment',
            text: 'Let segments grow in place, and allocate the KV cache once at its full size.',
            example: 'PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; cache_implementation="static"',
          },
          confidence: 'medium',
          evidence: [evidence],
          check: 'inferscope memory, or repeat the run: compare reserved and allocated',
        }),
      ],
    };
  },
};
