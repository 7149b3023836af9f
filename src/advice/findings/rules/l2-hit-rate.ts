import { bytesPerElement, dtypes } from '../../../model/dtype.js';
import { shortName } from '../counted-kernels.js';
import { counterRule } from '../counter-rule.js';
import type { CountedRow } from '../kernel-metrics.js';
import { formatBytes, formatFactor, formatQuantity } from '../../../vocabulary/format.js';

/** Reading a quarter more than there is can be a prefetch or a second pass that has to be. */
const leastRereads = 1.25;
/** % of its peak: DRAM less busy than this is not what the kernel waits for. */
const leastBusy = 40;

const metrics = {
  dram_read_bytes: 'dram__bytes_read.sum',
  dram_percent: 'gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed',
  l2_hit_percent: 'lts__t_sector_hit_rate.pct',
};
const derived = {
  // The most bytes that there are to read.
  distinct_bytes: 'coalesce(operand_bytes, held_bytes)',
  of_product: '(operand_bytes IS NOT NULL)::INTEGER',
};
const elementBytes = dtypes.map((dtype) => `WHEN '${dtype}' THEN ${bytesPerElement[dtype]}`).join(' ');

/**
 * A kernel that fetches the same bytes from DRAM more than once because they left the L2 in between. A low hit rate alone is
 * no fault: data that is read once cannot hit. What proves it is more bytes read than exist: the operands of a matrix
 * product whose shape was logged, or all memory that the program had in use.
 */
export const l2HitRate = counterRule(
  {
    id: 'l2_hit_rate',
    title: 'Data read from DRAM more than once',
    docs: {
      finds: 'The same data is read from DRAM more than once, because it left the L2 before its next use.',
      needs: 'hardware counters of ncu (`inferscope run --evaluator nsys,ncu`)',
      gain: 'The share of DRAM reads that repeat, as far as DRAM is busy; low end half of it.',
      change: 'Order blocks so that neighbours share operands, use larger tiles, or fuse passes.',
      withheld: 'less than 1.25x the distinct bytes, or DRAM less than 40 % busy',
    },
    references: [
      {
        title: 'Triton: L2 cache optimisations of a matrix product',
        url: 'https://triton-lang.org/main/getting-started/tutorials/03-matrix-multiplication.html#l2-cache-optimizations',
      },
    ],
  },
  {
    condition: {
      metrics,
      derived,
      where: `dram_read_bytes >= ${leastRereads} * distinct_bytes AND coalesce(dram_percent, 0) >= ${leastBusy}`,
      tables: {
        with: {
          // The most device memory in use at any time: nothing can read more distinct bytes.
          held: `SELECT coalesce(max(bytes) FILTER (WHERE kind IN ('allocated', 'max_memory_allocated')), max(bytes) FILTER (WHERE kind = 'used')) AS held_bytes
            FROM memory WHERE device IS NOT NULL`,
          // Bytes of A, B and C of the products that a kernel of this name ran, where all of them had one shape.
          operands: `SELECT k.name, max(bytes) AS operand_bytes FROM (
              SELECT op_id, capture_id, coalesce(batch, 1) * (m * k + k * n + m * n) * CASE dtype ${elementBytes} END AS bytes FROM gemms WHERE op_id IS NOT NULL) g
            JOIN kernels k ON k.op_id = g.op_id AND k.capture_id = g.capture_id
            WHERE k.class = 'gemm' AND bytes IS NOT NULL GROUP BY k.name HAVING min(bytes) = max(bytes)`,
        },
        join: 'CROSS JOIN held LEFT JOIN operands ON operands.name = kernel_name',
      },
    },
    told: {
      column: 'distinct_bytes',
      otherwise:
        'Neither shapes of matrix products nor the memory in use tell how many bytes there are to read.',
    },
    none: 'No profiled kernel that keeps DRAM busy reads more bytes than there are to read.',
    saving({ dram_read_bytes: read, distinct_bytes: distinct, dram_percent: busy }) {
      const again = 1 - distinct! / read!;
      const expected = (again * (busy ?? 0)) / 100;
      return { low: expected / 2, expected, high: again };
    },
    evidence: words,
    title: (row) => `L2 misses: ${words(row)}`,
    cause: (_, place) =>
      `The same data is fetched from DRAM again because it left the L2 before its next use: the blocks that run at the same time share too little of it. ${place}`,
    change: {
      kind: 'code',
      text: 'Order the blocks so that those running together share operands (grouped, swizzled order), use larger tiles, or fuse the passes that read the same tensor.',
      example: 'GROUP_SIZE_M = 8 in the order of program ids',
    },
    assumption: 'The time in which DRAM is busy shrinks to reading every byte once; the rest stays.',
  },
);

function words(row: CountedRow<keyof typeof metrics, keyof typeof derived>): string {
  const { dram_read_bytes: read, distinct_bytes: distinct } = row;
  const what = row.of_product ? "its product's operands hold" : 'the program has in use';
  return `${shortName(row.kernel_name)} reads ${formatBytes(read!)} from DRAM, ${formatFactor(read! / distinct!)} what ${what} (${formatBytes(distinct!)}); L2 hit rate ${formatQuantity(row.l2_hit_percent ?? 0, '%')}`;
}
