import { readLines } from '../interrupted.js';
import type { Issue } from '../../model/document.js';
import type { ImportTarget } from '../../model/workbench.js';
import type { CaptureFacts, ImportContext, Importer, ImportOutcome } from '../importer.js';
import { badLog, blasType, GemmShapes } from './shapes.js';

/**
 * cuBLAS's own log (CUBLAS_LOGINFO_DBG=1). A call is a block of lines:
 * ```
 * I! cuBLAS (v13.1.0) function cublasStatus_t cublasGemmEx(cublasHandle_t, …) called:
 * i!  transa: type=cublasOperation_t; val=CUBLAS_OP_T(1)
 * i!  m: type=int; val=512
 * i!Process=1451; Thread=140391305376064; GPU=0; Handle=…
 * ```
 * It has shapes, types and transposition, but not the algorithm. Times are whole seconds and not usable.
 */
export const cublasLogImporter = {
  name: 'cublas-log',
  sniff: (firstBytes) => /^[Ii]! cuBLAS \(v[\d.]+\) function /m.test(firstBytes),
  async facts(path): Promise<CaptureFacts> {
    let version: string | null = null;
    for await (const line of readLines(path)) {
      version = callLine.exec(line)?.[1] ?? null;
      if (version) break;
    }
    return {
      tool: { name: 'cublas', version },
      realtime_zero_ns: null,
      command: null,
      hardware: {},
      software: version ? { cublas: version } : {},
      purpose: 'gemm-log',
    };
  },
  async load(path, { sink }: Pick<ImportTarget, 'sink'>, context: ImportContext): Promise<ImportOutcome> {
    const shapes = new GemmShapes();
    const losses = { unreadable: 0, grouped: 0, cutOff: 0 };
    let call: Call | null = null;
    for await (const line of readLines(path, context.signal)) {
      const start = callLine.exec(line);
      if (start) {
        if (call) losses.cutOff++;
        call = gemmName.test(start[2]!) ? { name: start[2]!, values: new Map() } : null;
        continue;
      }
      if (!call) continue;
      const value = /^i!\s+(\w+): type=.*?; val=(.*)$/.exec(line);
      if (value) call.values.set(value[1]!, value[2]!.trim());
      const lastLine = /^i!\s*Process=(\d+);.*?GPU=(\d+)/.exec(line);
      if (!lastLine) continue;
      if (/Grouped/.test(call.name)) losses.grouped++;
      else if (!addCall(call, shapes, Number(lastLine[1]), Number(lastLine[2]))) losses.unreadable++;
      call = null;
    }
    if (call) losses.cutOff++;
    if (shapes.size === 0) throw badLog(path, 'cuBLAS', 'It contains no complete call of a GEMM function.');
    shapes.write(sink, context);
    return { clock: { name: 'none', resolution_ns: 1e9, error_bound_ns: null }, issues: lossIssues(losses) };
  },
} satisfies Importer;

const callLine = /^[Ii]! cuBLAS \(v([\d.]+)\) function \w+ (\w+)\(/;
const gemmName = /^cublas(?:[SDCZH]|Lt)?gemm(?:3m)?/i;

interface Call {
  name: string;
  values: Map<string, string>;
}

/** @returns false when m, n or k is missing */
function addCall({ name, values }: Call, shapes: GemmShapes, pid: number, device: number): boolean {
  const [m, n, k] = ['m', 'n', 'k'].map((key) => Number(values.get(key) ?? Number.NaN));
  if (![m, n, k].every(Number.isSafeInteger)) return false;
  const batch = Number(values.get('batchCount') ?? 1);
  const compute = values.get('computeType');
  shapes.add({
    pid,
    device,
    m: m!,
    n: n!,
    k: k!,
    batch: Number.isSafeInteger(batch) ? batch : 1,
    transA: operation(values.get('transa')),
    transB: operation(values.get('transb')),
    dtype: values.has('Atype') ? blasType(values.get('Atype')!) : typeOfName(name),
    compute_type: compute ? compute.replace(/\(\d+\)$/, '').replace(/^(CUBLAS|CUDA)_/, '') : null,
    algo: values.get('algo')?.replace(/\(-?\d+\)$/, '') ?? null,
    tile: null,
  });
  return true;
}

/** CUBLAS_OP_T(1) */
function operation(text: string | undefined): string {
  return /OP_([NTC])/.exec(text ?? '')?.[1] ?? 'N';
}

/** cublasSgemm_v2: the type is part of the name. */
function typeOfName(name: string): string {
  const letter = /^cublas([SDCZH])gemm/i.exec(name)?.[1]?.toUpperCase() ?? '';
  const names: Record<string, string> = {
    S: 'float32',
    D: 'float64',
    H: 'float16',
    C: 'complex64',
    Z: 'complex128',
  };
  return names[letter] ?? 'unknown';
}

function lossIssues(losses: { unreadable: number; grouped: number; cutOff: number }): Issue[] {
  const texts = {
    unreadable: ['gemm_log_unreadable', 'GEMM calls without m, n and k in the log were skipped.'],
    grouped: ['gemm_log_grouped', 'Calls of grouped GEMMs (several shapes per call) were skipped.'],
    cutOff: ['gemm_log_cut_off', 'GEMM calls with a truncated block of lines were skipped.'],
  } as const;
  return (Object.keys(texts) as (keyof typeof texts)[])
    .filter((reason) => losses[reason] > 0)
    .map((reason): Issue => ({
      code: texts[reason][0],
      severity: 'warning',
      text: texts[reason][1],
      count: losses[reason],
    }));
}
