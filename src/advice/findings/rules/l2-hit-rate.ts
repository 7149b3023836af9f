import { bytesPerElement, dtypes } from '../../../model/dtype.js';
import { counterRule } from '../counter-rule.js';
import type { CountedRow } from '../kernel-metrics.js';
import { formatBytes, formatFactor, formatQuantity } from '../../../vocabulary/format.js';

/** Up to a quarter of extra reads can be prefetch or a necessary second pass. */
const minRereads = 1.25;
/** % of peak: below it, DRAM does not limit the kernel. */
const minBusyPercent = 40;

const metrics = {
  dram_read_bytes: 'dram__bytes_read.sum',
  dram_percent: 'gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed',
  l2_hit_percent: 'lts__t_sector_hit_rate.pct',
};
const derived = {
  // Upper limit of the distinct bytes to read.
  distinct_bytes: 'coalesce(operand_bytes, peak_bytes)',
  of_gemm: '(operand_bytes IS NOT NULL)::INTEGER',
};
const elementBytes = dtypes.map((dtype) => `WHEN '${dtype}' THEN ${bytesPerElement[dtype]}`).join(' ');

/**
 * A kernel that fetches the same bytes from DRAM more than once because they left the L2 in between. A low hit rate alone is not
 * a problem: data that is read once cannot hit. The proof is more bytes read than exist: the operands of a GEMM with a logged
 * shape, or all memory in use by the program.
 */
export const l2HitRate = counterRule(
  {
    id: 'l2_hit_rate',
    title: 'Data read from DRAM more than once',
    docs: {
      finds: 'The same data is read from DRAM more than once, because it left the L2 before its next use.',
      needs: 'hardware counters of ncu (`inferscope run --evaluator nsys,ncu`)',
      gain: 'The share of DRAM reads that repeat, as far as DRAM is busy; low end half of it.',
      change: 'Order blocks so that neighbors share operands, use larger tiles, or fuse passes.',
      withheld: 'a kernel that reads less than 1.25x its distinct bytes, or DRAM less than 40 % busy',
    },
    references: [
      {
        title: 'Triton: L2 cache optimizations of a matrix multiplication',
        url: 'https://triton-lang.org/main/getting-started/tutorials/03-matrix-multiplication.html#l2-cache-optimizations',
      },
    ],
  },
  {
    condition: {
      metrics,
      derived,
      where: `dram_read_bytes >= ${minRereads} * distinct_bytes AND coalesce(dram_percent, 0) >= ${minBusyPercent}`,
      tables: {
        with: {
          // Peak device memory: no kernel can read more distinct bytes.
          peak_memory: `SELECT coalesce(max(bytes) FILTER (WHERE kind IN ('allocated', 'max_memory_allocated')), max(bytes) FILTER (WHERE kind = 'used')) AS peak_bytes
            FROM memory WHERE device IS NOT NULL`,
          // Bytes of A, B and C of the GEMMs of a kernel, if all its GEMMs have one shape.
          operands: `SELECT k.name, max(bytes) AS operand_bytes FROM (
              SELECT op_id, capture_id, coalesce(batch, 1) * (m * k + k * n + m * n) * CASE dtype ${elementBytes} END AS bytes FROM gemms WHERE op_id IS NOT NULL) g
            JOIN kernels k ON k.op_id = g.op_id AND k.capture_id = g.capture_id
            WHERE k.class = 'gemm' AND bytes IS NOT NULL GROUP BY k.name HAVING min(bytes) = max(bytes)`,
        },
        join: 'CROSS JOIN peak_memory LEFT JOIN operands ON operands.name = kernel_name',
      },
    },
    known: {
      column: 'distinct_bytes',
      otherwise:
        'The number of distinct bytes is not known: neither GEMM shapes nor memory in use were recorded.',
    },
    notFired: `No profiled kernel that keeps DRAM busy reads ${minRereads}x its distinct bytes or more.`,
    saving({ dram_read_bytes: read, distinct_bytes: distinct, dram_percent: busy }) {
      const again = 1 - distinct! / read!;
      const expected = (again * (busy ?? 0)) / 100;
      return { low: expected / 2, expected, high: again };
    },
    evidence: words,
    title: (row, kernel) => `L2 misses: ${words(row, kernel)}`,
    cause: (_, place) =>
      `The same data is fetched from DRAM again because it left the L2 before its next use: the blocks that run at the same time share too little of it. ${place}`,
    change: {
      kind: 'code',
      text: 'Order the blocks so that those running together share operands (grouped, swizzled order), use larger tiles, or fuse the passes that read the same tensor.',
      example: 'GROUP_SIZE_M = 8 in the order of program ids',
    },
    assumption: 'DRAM busy time shrinks to reading every byte once; the rest stays.',
  },
);

function words(row: CountedRow<keyof typeof metrics, keyof typeof derived>, kernel: string): string {
  const { dram_read_bytes: read, distinct_bytes: distinct } = row;
  const what = row.of_gemm ? 'the size of its GEMM operands' : 'the memory that the program uses';
  return `${kernel} reads ${formatBytes(read!)} from DRAM, ${formatFactor(read! / distinct!)} ${what} (${formatBytes(distinct!)})${row.l2_hit_percent === null ? '' : `; L2 hit rate ${formatQuantity(row.l2_hit_percent, '%')}`}`;
}
