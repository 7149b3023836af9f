import { containsNo } from '../trace-file-error.js';
import type { InferscopeError } from '../../model/errors.js';
import type { Row, TableSink } from '../../model/tables.js';
import type { ImportContext } from '../importer.js';

/**
 * A GEMM in the convention of the BLAS libraries: column-major, D(m×n) = op(A)(m×k) · op(B)(k×n).
 */
export interface ColumnMajorGemm {
  pid: number | null;
  device: number | null;
  m: number;
  n: number;
  k: number;
  batch: number;
  /** 'N', 'T' or 'C'. */
  transA: string;
  transB: string;
  /** Row-major matrices (cublasLt's ORDER_ROW): nothing is swapped. */
  rowMajor?: boolean;
  dtype: string;
  compute_type: string | null;
  algo: string | null;
  tile: string | null;
}

/**
 * Distinct shapes with their calls, in order of first appearance.
 *
 * Frameworks store matrices row-major and call the library with swapped operands: PyTorch's Y(tokens×out) =
 * X(tokens×in) · W(out×in)ᵀ becomes m = out, n = tokens, k = in, op(A) = T. Rows use the framework's view: **m and n
 * are swapped** (m = tokens, n = output features). `layout` and `tile` stay as the library writes them (TN; tile rows
 * belong to its m, which is our n), as in kernel names.
 */
export class GemmShapes {
  private readonly rows = new Map<string, Row<'gemms'>>();

  add(gemm: ColumnMajorGemm): void {
    const { transA, transB, rowMajor, ...fields } = gemm;
    const row: Row<'gemms'> = {
      ...fields,
      m: rowMajor ? gemm.m : gemm.n,
      n: rowMajor ? gemm.n : gemm.m,
      layout: transA + transB,
    };
    const key = JSON.stringify(row);
    const sameRow = this.rows.get(key);
    if (sameRow) sameRow.calls = (sameRow.calls ?? 0) + 1;
    else this.rows.set(key, { ...row, calls: 1 });
  }

  get size(): number {
    return this.rows.size;
  }

  write(sink: TableSink, context: ImportContext): void {
    const { execution_id, capture_id, host } = context;
    for (const row of this.rows.values()) {
      sink.append('gemms', { execution_id, capture_id, host, rank: 0, dur_ns: null, ...row });
    }
  }
}

/** Maps CUDA_R_16F, R_16F, R_8F_E4M3, … to the names used everywhere else; an unknown one stays, in lower case. */
export function blasType(text: string): string {
  const name = text.replace(/\(\d+\)$/, '').replace(/^(CUDA|HIP|HIPBLAS)_/, '');
  return types[name] ?? name.toLowerCase();
}

const types: Record<string, string> = {
  R_64F: 'float64',
  R_32F: 'float32',
  R_16F: 'float16',
  R_16BF: 'bfloat16',
  R_8F_E4M3: 'float8_e4m3',
  R_8F_E5M2: 'float8_e5m2',
  R_8F_E4M3_FNUZ: 'float8_e4m3fnuz',
  R_8F_E5M2_FNUZ: 'float8_e5m2fnuz',
  R_4F_E2M1: 'float4_e2m1',
  R_8I: 'int8',
  R_4I: 'int4',
  C_32F: 'complex64',
  C_64F: 'complex128',
};

export function badLog(path: string, library: string, why: string): InferscopeError {
  const fix =
    library === 'cuBLAS'
      ? 'Record it with CUBLAS_LOGINFO_DBG=1 CUBLAS_LOGDEST_DBG=cublas.log.'
      : `Record it with ${library === 'hipBLASLt' ? 'HIPBLASLT' : 'CUBLASLT'}_LOG_LEVEL=5 and …_LOG_FILE=FILE.`;
  return containsNo(`GEMM of ${library}`, fix)(path, why);
}
