import { peakLiveActivations } from '../llm/activations.js';
import { kvCacheBytes } from '../llm/kv-cache.js';
import type { MemoryResult } from '../model/documents/profile.js';
import { figure, missing, type Figure } from '../model/figure.js';
import type { Workload } from '../model/manifest.js';
import type { SessionDatabase } from '../session/query.js';
import { workloadModel } from './model-work.js';

interface PointRow {
  t_ns: number;
  bytes: number;
  point: 'baseline' | 'post_warmup' | 'peak';
  source: string;
}

/**
 * Memory of the engine's process over its first clean launch: baseline before anything of the engine is loaded, after
 * warm-up, and the peak as the kernel counted it. The breakdown is at the peak.
 */
export async function memory(database: SessionDatabase, workload: Workload): Promise<MemoryResult | null> {
  const [first] = await database.query<{ pid: number }>(
    `SELECT pid FROM memory WHERE execution_id = 'clean' AND point = 'baseline' ORDER BY t_ns LIMIT 1`,
  );
  if (!first) return null;
  const points = await database.query<PointRow>(
    `SELECT t_ns, bytes, point, source FROM memory
     WHERE execution_id = 'clean' AND pid = $1 AND point IS NOT NULL ORDER BY t_ns`,
    [first.pid],
  );
  const series = await database.query<{ t_ms: number; bytes: number }>(
    `SELECT t_ns / 1e6 AS t_ms, bytes FROM memory
     WHERE execution_id = 'clean' AND pid = $1 AND kind = 'rss' AND point IS NULL ORDER BY t_ns`,
    [first.pid],
  );
  const at = (point: PointRow['point']) => points.find((row) => row.point === point);
  const pointFigure = (point: PointRow['point'], why: string): Figure => {
    const row = at(point);
    return row ? figure(row.bytes, 'B', row.source) : missing('not_reached', why);
  };
  const peak = at('peak');
  return {
    baseline_bytes: pointFigure('baseline', 'the process recorded no memory before loading'),
    post_warmup_bytes: pointFigure('post_warmup', 'the run ended before the warm-up was over'),
    peak_bytes: pointFigure('peak', 'the run ended before its last repeat'),
    breakdown: peak
      ? breakdown(peak.bytes, await runtimeMemory(database, first.pid, at('baseline')), workload)
      : [],
    series,
    marks: points.map((row) => ({ t_ms: row.t_ns / 1e6, point: row.point, bytes: row.bytes })),
    phases: await phases(database, first.pid),
  };
}

function breakdown(
  peakBytes: number,
  runtime: MemoryResult['breakdown'][number],
  workload: Workload,
): MemoryResult['breakdown'] {
  const rows: MemoryResult['breakdown'] = [];
  const weights = workload.model?.weight_bytes ?? null;
  if (weights !== null) {
    rows.push({
      component: 'weights',
      bytes: weights,
      confidence: 'high',
      evidence:
        'bytes of the parameters in the model file; the runtime keeps one copy, packed for its kernels',
    });
  }
  const model = workloadModel(workload);
  const { batch_size: batchSize, input_len: inputLen, output_len: outputLen } = workload;
  if ('architecture' in model && batchSize && inputLen && outputLen) {
    const { architecture, storage } = model;
    rows.push({
      component: 'kv_cache',
      bytes: kvCacheBytes(architecture, {
        kvCache: storage.kvCache,
        batchSize,
        contextTokens: inputLen + outputLen,
      }),
      // A formula is not a measurement.
      confidence: 'medium',
      evidence: `formula: 2 × layers × KV heads × head_dim × 4 B × ${inputLen + outputLen} tokens × batch ${batchSize}`,
    });
    const live = peakLiveActivations(
      architecture,
      { phase: 'prefill', batchSize, newTokens: inputLen, contextTokens: 0 },
      { activations: storage.activations },
    );
    rows.push({
      component: 'activations',
      bytes: live.bytes,
      confidence: live.confidence,
      evidence: `estimate of what is live at once in prefill: ${live.source}`,
    });
  }
  rows.push(runtime);
  const known = rows.reduce((sum, row) => sum + row.bytes, 0);
  rows.push({
    component: 'residual',
    bytes: peakBytes - known,
    confidence: 'low',
    evidence: "measured peak less the rows above: mostly the runtime's arena, which grows in powers of two",
  });
  return rows;
}

/**
 * Memory of the software itself: the pages backed by files (code of Node.js and of the runtime, mapped files) when
 * the process was largest, and what Node.js had allocated before anything of the engine was loaded.
 */
async function runtimeMemory(
  database: SessionDatabase,
  pid: number,
  baseline: PointRow | undefined,
): Promise<MemoryResult['breakdown'][number]> {
  const [split] = await database.query<{ file: number | null; anonymous: number | null }>(
    `SELECT arg_max(bytes, total) FILTER (kind = 'file') AS file,
            arg_min(bytes, abs(t_ns - $2)) FILTER (kind = 'anonymous') AS anonymous
     FROM (SELECT *, max(bytes) FILTER (kind = 'rss') OVER (PARTITION BY t_ns) AS total FROM memory
           WHERE execution_id = 'clean' AND pid = $1 AND point IS NULL)`,
    [pid, baseline?.t_ns ?? 0],
  );
  if (split?.file && split.anonymous !== null) {
    return {
      component: 'runtime',
      bytes: split.file + split.anonymous,
      confidence: 'medium',
      evidence:
        'file-backed pages at the largest sample (code of Node.js and the runtime, mapped files) + what Node.js had allocated at the baseline',
    };
  }
  return {
    component: 'runtime',
    bytes: baseline?.bytes ?? 0,
    confidence: 'medium',
    evidence: 'resident set before the runtime and the model were loaded (Node.js)',
  };
}

async function phases(database: SessionDatabase, pid: number): Promise<MemoryResult['phases']> {
  return database.query(
    `SELECT 'load' AS label, start_ns / 1e6 AS start_ms, end_ns / 1e6 AS end_ms FROM stages
       WHERE execution_id = 'clean' AND pid = $1 AND kind = 'load'
     UNION ALL
     SELECT CASE WHEN warmup THEN 'warm-up' ELSE 'timed' END, min(start_ns) / 1e6, max(end_ns) / 1e6 FROM iterations
       WHERE execution_id = 'clean' AND pid = $1 GROUP BY warmup
     ORDER BY start_ms`,
    [pid],
  );
}
