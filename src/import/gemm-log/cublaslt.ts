import { readLines } from '../interrupted.js';
import type { Issue } from '../../model/document.js';
import type { ImportTarget } from '../../model/workbench.js';
import type { CaptureFacts, Fact, ImportContext, Importer, ImportOutcome } from '../importer.js';
import { badLog, blasType, type ColumnMajorGemm, GemmShapes } from './shapes.js';

/**
 * cuBLASLt's log at level 5 (CUBLASLT_LOG_LEVEL=5), and hipBLASLt's, in the same form. A GEMM is one
 * line, `Trace`; the `Api` lines show the same calls with pointers only:
 * ```
 * [2026-11-21 04:56:41][cublasLt][1451][Trace][cublasLtHSHMatmul] A=0X… Adesc=[type=R_16F rows=512 cols=128 ld=512]
 *   Bdesc=[type=R_16F rows=512 cols=256 ld=512] … computeDesc=[computeType=COMPUTE_32F transa=OP_T smCountTarget=132]
 *   algo=[algoId=66 tile=MATMUL_TILE_64x8 stages=MATMUL_STAGES_64xAUTO clusterShape=CLUSTER_SHAPE_2x4x1] …
 * ```
 * cuBLAS calls cuBLASLt, so a cuBLAS log of the same run contains the same calls: never sum the two.
 */
export const cublasLtLogImporter = {
  name: 'cublaslt-log',
  sniff: (firstBytes) => /^\[[^\]]+\]\[(?:cublasLt|HIPBLASLT)\]\[\d+\]\[/im.test(firstBytes),
  async facts(path): Promise<CaptureFacts> {
    const hardware: Record<string, Fact> = {};
    let library = 'cublaslt';
    let lineCount = 0;
    for await (const line of readLines(path)) {
      const match = traceLine.exec(line);
      if (match) {
        library = match[1]!.toLowerCase();
        const sms = /smCountTarget=(\d+)/.exec(line)?.[1];
        if (sms) hardware['gpu_sm_count'] = Number(sms);
      }
      if (match || ++lineCount > 10_000) break;
    }
    return {
      tool: { name: library, version: null },
      realtime_zero_ns: null,
      command: null,
      hardware,
      software: {},
      purpose: 'gemm-log',
    };
  },
  async load(path, { sink }: Pick<ImportTarget, 'sink'>, context: ImportContext): Promise<ImportOutcome> {
    const shapes = new GemmShapes();
    let traces = 0;
    let unreadable = 0;
    let library = 'cuBLASLt';
    for await (const line of readLines(path, context.signal)) {
      const match = traceLine.exec(line);
      if (!match) continue;
      traces++;
      if (match[1]!.toUpperCase() === 'HIPBLASLT') library = 'hipBLASLt';
      const gemm = readGemm(line, Number(match[2]));
      if (gemm) shapes.add(gemm);
      else unreadable++;
    }
    if (shapes.size === 0) {
      throw badLog(
        path,
        library,
        traces === 0
          ? 'It has no Trace line: the log level was below 5, or the file is cut off.'
          : `None of its ${traces} Trace lines is complete.`,
      );
    }
    shapes.write(sink, context);
    const issues: Issue[] =
      unreadable === 0
        ? []
        : [
            {
              code: 'gemm_log_unreadable',
              severity: 'warning',
              text: 'Trace lines without the layouts of A and D were skipped (the last one may be cut off).',
              count: unreadable,
            },
          ];
    return { clock: { name: 'none', resolution_ns: 1e9, error_bound_ns: null }, issues };
  },
} satisfies Importer;

/** cublasLtMatmul, cublasLtHSHMatmul, rocblaslt_matmul; not …MatmulAlgoGetHeuristic. */
const traceLine = /^\[[^\]]+\]\[(cublasLt|HIPBLASLT)\]\[(\d+)\]\[Trace\]\[\w*matmul\]/i;

function readGemm(line: string, pid: number): ColumnMajorGemm | null {
  const a = readBracket(line, 'Adesc');
  const d = readBracket(line, 'Ddesc') ?? readBracket(line, 'Cdesc');
  const compute = readBracket(line, 'computeDesc');
  if (!a || !d || !compute) return null;
  const transA = operation(compute, 'transa');
  const m = Number(d.get('rows'));
  const n = Number(d.get('cols'));
  const k = Number(a.get(transA === 'N' ? 'cols' : 'rows'));
  if (![m, n, k].every(Number.isSafeInteger)) return null;
  const algo = readBracket(line, 'algo');
  return {
    pid,
    device: null,
    m,
    n,
    k,
    batch: Number(a.get('batchcount') ?? d.get('batchcount') ?? 1),
    transA,
    transB: operation(compute, 'transb'),
    rowMajor: (d.get('order') ?? '').endsWith('ROW'),
    dtype: blasType(a.get('type') ?? 'unknown'),
    compute_type: compute.get('computetype') ?? null,
    algo: algo ? algoText(algo) : null,
    tile: algo ? tileText(algo) : null,
  };
}

/** Adesc=[type=R_16F rows=512 cols=128 ld=512]: keys lower-case, because the libraries differ. Null when absent. */
function readBracket(line: string, name: string): Map<string, string> | null {
  const text = new RegExp(`\\b${name}=\\[([^\\]]*)\\]`).exec(line)?.[1];
  if (text === undefined) return null;
  return new Map(
    text.split(/\s+/).map((pair) => {
      const index = pair.indexOf('=');
      return [pair.slice(0, index).toLowerCase(), pair.slice(index + 1)];
    }),
  );
}

/** Omitted in the log when it is the default, N. */
function operation(compute: Map<string, string>, key: string): string {
  return /OP_([NTC])/.exec(compute.get(key) ?? '')?.[1] ?? 'N';
}

/** "66 stages=64xAUTO customoption=3 clustershape=2x4x1": the id, then the other choices. */
function algoText(algo: Map<string, string>): string {
  const options = [...algo]
    .filter(([key]) => key !== 'algoid' && key !== 'tile')
    .map(([key, value]) => `${key}=${value.replace(/^(MATMUL_STAGES|CLUSTER_SHAPE)_/, '')}`);
  return [algo.get('algoid') ?? 'unknown', ...options].join(' ');
}

/** MATMUL_TILE_64x24 and the depth of a stage, MATMUL_STAGES_64xAUTO, give 64x24x64. */
function tileText(algo: Map<string, string>): string | null {
  const tile = /^MATMUL_TILE_(\d+x\d+)$/.exec(algo.get('tile') ?? '')?.[1];
  if (!tile) return null;
  const depth = /^MATMUL_STAGES_(\d+)x/.exec(algo.get('stages') ?? '')?.[1];
  return depth ? `${tile}x${depth}` : tile;
}
