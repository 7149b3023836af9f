import { doubt } from '../doubt.js';
import type { Rule } from '../rule.js';
import { formatBytes, formatPercent } from '../../../vocabulary/format.js';

/** Of what the allocator holds: it keeps some blocks for the next request by design. */
const leastShare = 0.2;
const leastBytes = 512 * 2 ** 20;

/** Memory that the framework's allocator holds and gives to no tensor, at the moment it held most. */
export const allocatorFragmentation: Rule = {
  id: 'allocator_fragmentation',
  title: 'Memory held by the allocator without use',
  docs: {
    finds: "The framework's allocator holds memory that no tensor uses.",
    needs: 'reserved and allocated memory at one moment (`inferscope memory`, records)',
    gain: 'None in time; the bytes are stated.',
    change: 'Let segments grow in place (`expandable_segments:True`), and allocate the KV cache once.',
    withheld: 'less than 20 % of the reserve, or less than 512 MiB',
  },
  references: [
    {
      title: 'PyTorch: optimising memory usage with PYTORCH_CUDA_ALLOC_CONF',
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
      `WITH held AS (
         SELECT execution_id, rank, device, coalesce(point, t_ns::VARCHAR) AS moment,
           max(bytes) FILTER (WHERE kind = 'reserved') AS reserved, max(bytes) FILTER (WHERE kind = 'allocated') AS allocated
         FROM memory WHERE kind IN ('reserved', 'allocated') AND device IS NOT NULL GROUP BY ALL)
       SELECT execution_id, device, max(reserved) AS reserved, arg_max(allocated, reserved) AS allocated FROM held
       WHERE reserved IS NOT NULL AND allocated IS NOT NULL GROUP BY execution_id, device
       ORDER BY max(reserved) - arg_max(allocated, reserved) DESC`,
      ([most]) =>
        most
          ? `gpu${most.device}: ${formatBytes(most.reserved)} reserved, ${formatBytes(most.allocated)} of it allocated`
          : 'no moment has both',
    );
    const [worst] = rows;
    if (!worst)
      return {
        outcome: 'not_applicable',
        why: 'Reserved and allocated memory were not recorded at one moment.',
      };
    const unused = worst.reserved - worst.allocated;
    const share = unused / worst.reserved;
    if (share < leastShare || unused < leastBytes)
      return {
        outcome: 'not_fired',
        why: `${formatBytes(unused)} of ${formatBytes(worst.reserved)} reserved are allocated to nothing (${formatPercent(share)}).`,
      };
    return {
      outcome: 'fired',
      findings: [
        doubt({
          title: `Fragmented memory: ${formatBytes(unused)} of ${formatBytes(worst.reserved)} that the allocator holds on gpu${worst.device} are in no tensor (${formatPercent(share)})`,
          cause:
            'The caching allocator keeps freed blocks and cannot give them to requests of other sizes (growing KV caches, varying prompt lengths), so it asks the driver for more: memory is short long before tensors fill it, and each new segment costs a cudaMalloc that synchronises.',
          change: {
            kind: 'environment',
            text: 'Let segments grow in place, and allocate the KV cache once at its full size.',
            example: 'PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True; cache_implementation="static"',
          },
          confidence: 'medium',
          evidence: [evidence],
          check: 'inferscope memory, or the same run again: reserved against allocated',
        }),
      ],
    };
  },
};
