import { doubt } from '../doubt.js';
import type { Evidence } from '../../../model/documents/explain.js';
import type { FindingContext, FoundDraft, Rule } from '../rule.js';
import { benchFlagSql } from '../queries/bench-queries.js';
import { benchOf } from '../session-analyses.js';
import { formatBytes } from '../../../vocabulary/format.js';
import { scopeLabel } from '../../../vocabulary/sampled-metrics.js';

/** More than driver, display and the program's own context use on an idle GPU (src/facts/bench/flags.ts). */
const minForeignBytes = 2 * 2 ** 30;

/** Another process used the GPU or its memory during the measurement. */
export const anotherProcess: Rule = {
  id: 'another_process',
  title: 'Another process on the GPU',
  docs: {
    finds: 'Another process used the GPU or its memory during the measurement.',
    needs: 'samples of GPU processes or memory, or a benchmark',
    gain: 'None: it makes other numbers unreliable.',
    change: 'Measure on a GPU that no other process uses.',
    withheld:
      'a recording of a whole machine, or no second process and less than 2 GiB in use before the program',
  },
  references: [],
  async find(context) {
    if (context.manifest.kind === 'monitor')
      return {
        outcome: 'not_applicable',
        why: 'A machine recording lists every process and measures none of them.',
      };
    const bench = await benchOf(context);
    if (bench) {
      const flags = bench.data.variants.flatMap(({ flags: variantFlags, points }) => [
        ...variantFlags,
        ...points.flatMap((point) => point.flags),
      ]);
      const texts = [
        ...new Set(flags.filter(({ code }) => code === 'other_process').map(({ text }) => text)),
      ];
      if (texts.length === 0)
        return { outcome: 'not_fired', why: 'No other process ran on the GPUs of the benchmark.' };
      const { evidence } = await context.evidence(benchFlagSql('other_process', null), () =>
        texts.join('; '),
      );
      return { outcome: 'fired', findings: [finding(texts[0]!, [evidence])] };
    }
    if (!context.has('telemetry') && !context.has('memory'))
      return { outcome: 'not_applicable', why: 'No GPU processes were sampled during the session.' };
    return (await findProcesses(context)) ?? (await findMemoryBefore(context)) ?? noOtherProcess;
  },
};

const noOtherProcess = {
  outcome: 'not_fired' as const,
  why: 'No sample shows a second compute process, or memory in use before the program started.',
};

/** NVML counts processes with a compute context on the device; one per rank belongs to the program. */
async function findProcesses(context: FindingContext) {
  const ranks = context.manifest.workload?.tensor_parallel_size ?? 1;
  const device = context.scope?.source.focus.device;
  const { rows, evidence } = await context.evidence<{
    scope: string;
    samples: number;
    max_processes: number;
    shared_samples: number;
  }>(
    `SELECT scope, count(*) AS samples, max(value)::INTEGER AS max_processes, count_if(value > 1) AS shared_samples FROM telemetry
     WHERE metric = 'compute_processes' AND value IS NOT NULL ${typeof device === 'number' ? `AND scope = 'gpu${device}'` : ''}
     GROUP BY scope ORDER BY max_processes DESC`,
    (all) =>
      all
        .map(
          (row) =>
            `${scopeLabel(row.scope)} had up to ${row.max_processes} compute processes, more than one in ${row.shared_samples} of ${row.samples} samples`,
        )
        .join('; '),
  );
  // A program may start short helper processes: require several samples.
  const worst = rows.find(
    ({ max_processes: max, shared_samples: shared, samples }) =>
      max > 1 && shared >= Math.max(2, 0.05 * samples),
  );
  if (!worst) return null;
  const note = ranks > 1 ? ' (they may be ranks of the same program)' : '';
  const text = `${scopeLabel(worst.scope)} had up to ${worst.max_processes} compute processes during the measurement${note}`;
  return { outcome: 'fired' as const, findings: [finding(text, [evidence])] };
}

/** Device memory at the first sample, if it was taken before the program's first work on the device. */
async function findMemoryBefore(context: FindingContext) {
  const { rows, evidence } = await context.evidence<{ device: number; bytes: number }>(
    `WITH program_start AS (
       SELECT execution_id, min(start_ns) AS start_ns FROM (
         SELECT execution_id, start_ns FROM kernels UNION ALL SELECT execution_id, start_ns FROM copies
         UNION ALL SELECT execution_id, start_ns FROM stages) GROUP BY execution_id)
     SELECT device, arg_min(bytes, t_ns) AS bytes, min(t_ns) AS t_ns, execution_id FROM memory JOIN program_start USING (execution_id)
     WHERE kind = 'used' AND device IS NOT NULL AND t_ns < start_ns GROUP BY execution_id, device ORDER BY bytes DESC`,
    (all) =>
      all
        .map(
          ({ device, bytes }) =>
            `GPU ${device}: ${formatBytes(bytes)} in use before the program's first work`,
        )
        .join('; '),
  );
  const worst = rows.find(({ bytes }) => bytes > minForeignBytes);
  if (!worst) return null;
  const text = `GPU ${worst.device} had ${formatBytes(worst.bytes)} in use by another process before the program started`;
  return { outcome: 'fired' as const, findings: [finding(text, [evidence])] };
}

function finding(text: string, evidence: Evidence[]): FoundDraft {
  return doubt({
    title: `Shared GPU: ${text}`,
    cause:
      'Processes on one GPU share its time, memory and bandwidth: measured times include waiting that no trace of this program shows.',
    change: {
      kind: 'environment',
      text: 'Measure on a GPU that no other process uses.',
      example: 'nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv',
    },
    confidence: 'medium',
    evidence,
    check: 'repeat the run on a free GPU, then: inferscope session compare @last~1 @last',
  });
}
