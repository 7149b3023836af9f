import { dtypes, bytesPerElement } from '../../../model/dtype.js';
import {
  type CountedKernel,
  leastKernelNs,
  placeWords,
  savingsByStage,
  shortName,
} from '../counted-kernels.js';
import { metricsByKernel, type MetricRow } from '../kernel-metrics.js';
import type { FindingContext, Rule } from '../rule.js';
import { countersOf } from '../session-analyses.js';

/** Reading a quarter more than there is can be a prefetch or a second pass that has to be. */
const leastRereads = 1.25;
/** % of its peak: DRAM less busy than this is not what the kernel waits for. */
const leastBusy = 40;

const metrics = {
  dram_read_bytes: 'dram__bytes_read.sum',
  dram_percent: 'gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed',
  l2_hit_percent: 'lts__t_sector_hit_rate.pct',
};
type Row = MetricRow<keyof typeof metrics>;

interface Reread extends Row {
  /** The most bytes that there are to read. */
  distinct: number;
  why: string;
}

/**
 * A kernel that fetches the same bytes from DRAM more than once because they left the L2 in between. A low hit rate alone is
 * no fault: data that is read once cannot hit. What proves it is more bytes read than exist: the operands of a matrix
 * product whose shape was logged, or all memory that the program had in use.
 */
export const l2HitRate: Rule = {
  id: 'l2_hit_rate',
  title: 'Data read from DRAM more than once',
  references: [
    {
      title: 'Triton: L2 cache optimisations of a matrix product',
      url: 'https://triton-lang.org/main/getting-started/tutorials/03-matrix-multiplication.html#l2-cache-optimizations',
    },
  ],
  async find(context) {
    const counters = await countersOf(context);
    if (!counters || counters.kernels.length === 0)
      return { outcome: 'not_applicable', why: 'The session has no hardware counters (ncu).' };
    const inUse = await memoryInUse(context);
    const operands = await operandBytes(context);
    if (inUse === null && operands.size === 0)
      return {
        outcome: 'not_applicable',
        why: 'Neither shapes of matrix products nor the memory in use tell how many bytes there are to read.',
      };
    const distinctOf = (row: Row): { bytes: number; why: string } | null => {
      const product = operands.get(row.kernel_name);
      if (product !== undefined) return { bytes: product, why: "its product's operands hold" };
      return inUse === null ? null : { bytes: inUse, why: 'the program has in use' };
    };
    const rereads = (row: Row): boolean => {
      const distinct = distinctOf(row);
      return (
        distinct !== null &&
        row.dram_read_bytes !== null &&
        row.dram_read_bytes >= leastRereads * distinct.bytes &&
        (row.dram_percent ?? 0) >= leastBusy
      );
    };
    const words = (row: Row) =>
      `${shortName(row.kernel_name)} reads ${gib(row.dram_read_bytes!)} from DRAM, ${(row.dram_read_bytes! / distinctOf(row)!.bytes).toFixed(1)} times what ${distinctOf(row)!.why} (${gib(distinctOf(row)!.bytes)}); L2 hit rate ${Math.round(row.l2_hit_percent ?? 0)} %`;
    const { rows, evidence } = await metricsByKernel(
      context,
      metrics,
      leastKernelNs,
      (found) => found.slice(0, 3).map(words).join('; '),
      rereads,
    );
    const found = rows.map((row): Reread => ({
      ...row,
      distinct: distinctOf(row)!.bytes,
      why: distinctOf(row)!.why,
    }));
    const kernels = found.map((row): CountedKernel => ({
      ...row,
      name: row.kernel_name,
      saving: savingOf(row),
    }));
    const [largest] = await savingsByStage(context, counters, kernels);
    if (!largest)
      return {
        outcome: 'not_fired',
        why: 'No profiled kernel that keeps DRAM busy reads more bytes than there are to read.',
      };
    const worst = rows.find(({ kernel_name: name }) => largest.kernels.some((one) => one.name === name))!;
    return {
      outcome: 'fired',
      findings: [
        {
          stage: largest.stage,
          title: `L2 misses: ${words(worst)}`,
          at_stake_ms: largest.expected_ms,
          cause: `The same data is fetched from DRAM again because it left the L2 before its next use: the blocks that run at the same time share too little of it. These kernels take ${Math.round((100 * largest.kernel_ms) / largest.whole_ms)} % of ${placeWords(largest)}.`,
          change: {
            kind: 'code',
            text: 'Order the blocks so that those running together share operands (grouped, swizzled order), use larger tiles, or fuse the passes that read the same tensor.',
            example: 'GROUP_SIZE_M = 8 in the order of program ids',
          },
          gain: {
            expected_ms: largest.expected_ms,
            low_ms: largest.low_ms,
            high_ms: largest.high_ms,
            after_ms: largest.whole_ms - largest.expected_ms,
            assumption: 'The time in which DRAM is busy shrinks to reading every byte once; the rest stays.',
            what_if: null,
          },
          confidence: 'medium',
          bars: [],
          evidence: [evidence],
          check: 'inferscope run --evaluator ncu,nsys -- <the changed command>',
        },
      ],
    };
  },
};

const gib = (bytes: number) =>
  bytes >= 2 ** 29 ? `${(bytes / 2 ** 30).toFixed(2)} GiB` : `${(bytes / 2 ** 20).toFixed(1)} MiB`;

function savingOf({ dram_read_bytes: read, distinct, dram_percent: busy }: Reread): CountedKernel['saving'] {
  const again = 1 - distinct / read!;
  const expected = (again * (busy ?? 0)) / 100;
  return { low: expected / 2, expected, high: again };
}

/** The most device memory in use at any time: nothing can read more distinct bytes. */
async function memoryInUse({ database }: FindingContext): Promise<number | null> {
  const [row] = await database.query<{ bytes: number | null }>(
    `SELECT coalesce(max(bytes) FILTER (WHERE kind IN ('allocated', 'max_memory_allocated')), max(bytes) FILTER (WHERE kind = 'used')) AS bytes
     FROM memory WHERE device IS NOT NULL`,
  );
  return row?.bytes ?? null;
}

/** Bytes of A, B and C of the products that a kernel of this name ran, where all of them had one shape. */
async function operandBytes({ database }: FindingContext): Promise<Map<string, number>> {
  const sizes = dtypes.map((dtype) => `WHEN '${dtype}' THEN ${bytesPerElement[dtype]}`).join(' ');
  const rows = await database.query<{ name: string; bytes: number }>(
    `SELECT k.name, max(bytes) AS bytes FROM (
       SELECT op_id, capture_id, coalesce(batch, 1) * (m * k + k * n + m * n) * CASE dtype ${sizes} END AS bytes FROM gemms
       WHERE op_id IS NOT NULL) g
     JOIN kernels k ON k.op_id = g.op_id AND k.capture_id = g.capture_id
     WHERE k.class = 'gemm' AND bytes IS NOT NULL GROUP BY k.name HAVING min(bytes) = max(bytes)`,
  );
  return new Map(rows.map(({ name, bytes }) => [name, bytes]));
}
