import { bytesPerElement } from '../../model/dtype.js';
import type { Session } from '../../session/open.js';
import { studentT95 } from '../../model/student-t.js';

/** A measured case of a `kernels` session. */
export interface MeasuredKernel {
  case: string;
  kernel: string;
  backend: string | null;
  dtype: string;
  params: Record<string, number>;
  flops: number;
  bytes: number;
  ns: number;
  /** Half of the 95 % interval of the mean, as a share of it; null if unknown. */
  interval: number | null;
  /** Ran through the embedded engine on the CPU, where kernels are fused. */
  cpu: boolean;
}

/**
 * Measured cases of sessions. If a case was measured twice or with several backends, the framework's own choice is used,
 * else the fastest.
 */
export async function readKernelTable(sessions: readonly Session[]): Promise<MeasuredKernel[]> {
  const all: MeasuredKernel[] = [];
  for (const session of sessions) all.push(...(await readCases(session)));
  return withoutDuplicates(all);
}

async function readCases(session: Session): Promise<MeasuredKernel[]> {
  const database = await session.connect();
  try {
    const rows = await database.query<
      Omit<MeasuredKernel, 'params' | 'cpu' | 'interval'> & {
        params: string;
        mean_ns: number | null;
        sd_ns: number | null;
        runs: number | null;
        threads: number | null;
        device: number | null;
      }
    >(
      `SELECT coalesce(case_id, name || ' ' || shape) AS "case", name AS kernel, backend, dtype, params,
              flops::DOUBLE AS flops, bytes::DOUBLE AS bytes, median_ns AS ns, mean_ns, sd_ns, runs, threads, device
       FROM microbenchmarks
       WHERE coalesce(outcome, 'measured') = 'measured' AND median_ns > 0 AND params IS NOT NULL
       ORDER BY case_id`,
    );
    return rows.map(({ threads, device, mean_ns: mean, sd_ns: sd, runs, ...row }) => ({
      ...row,
      interval:
        mean === null || sd === null || runs === null || runs < 2
          ? null
          : (studentT95(runs - 1) * sd) / Math.sqrt(runs) / mean,
      params: JSON.parse(row.params) as Record<string, number>,
      flops: row.flops ?? 0,
      bytes: row.bytes ?? 0,
      cpu: device === null && threads !== null,
    }));
  } finally {
    await database.close();
  }
}

const caseKey = ({ kernel, dtype, params }: MeasuredKernel): string =>
  `${kernel} ${dtype} ${JSON.stringify(Object.entries(params).toSorted(([x], [y]) => (x < y ? -1 : 1)))}`;

export function withoutDuplicates(all: readonly MeasuredKernel[]): MeasuredKernel[] {
  const best = new Map<string, MeasuredKernel>();
  for (const kernel of all) {
    const known = best.get(caseKey(kernel));
    const isBetter =
      !known || (kernel.backend === null) !== (known.backend === null)
        ? kernel.backend === null
        : kernel.ns < known.ns;
    if (!known || isBetter) best.set(caseKey(kernel), kernel);
  }
  return [...best.values()];
}

/**
 * Parameters that name a family, and those that are interpolated over, outermost first. Within a family only the work
 * grows.
 */
export const axesOf: Record<string, { family: readonly string[]; axes: readonly string[] }> = {
  gemm: { family: ['n', 'k', 'batch'], axes: ['m'] },
  attention: { family: ['heads', 'kv_heads', 'head_dim'], axes: ['batch', 'new_tokens', 'context'] },
  swiglu: { family: ['intermediate'], axes: ['tokens'] },
  rope: { family: ['heads', 'kv_heads', 'head_dim'], axes: ['tokens'] },
  embedding: { family: ['hidden'], axes: ['tokens'] },
  sampling: { family: ['vocab'], axes: ['batch'] },
};

/**
 * Number of device kernels of a case that moves bytes, as PyTorch launches it eagerly, and the bytes that they move
 * together.
 */
export function elementwiseForm(kernel: MeasuredKernel): { kernels: number; bytes: number } | null {
  const parameter = (name: string) => kernel.params[name] ?? 0;
  const elementBytes = bytesPerElement[kernel.dtype as keyof typeof bytesPerElement];
  if (elementBytes === undefined) return null;
  const copy = { kernels: 1, bytes: kernel.bytes };
  switch (kernel.kernel) {
    case 'swiglu':
      return kernel.cpu
        ? copy
        : { kernels: 2, bytes: 5 * parameter('tokens') * parameter('intermediate') * elementBytes };
    case 'rope':
      return kernel.cpu
        ? copy
        : {
            kernels: 10,
            bytes:
              10 *
              parameter('tokens') *
              (parameter('heads') + parameter('kv_heads')) *
              parameter('head_dim') *
              elementBytes,
          };
    case 'rmsnorm':
      return kernel.cpu || parameter('residual') === 0
        ? copy
        : { kernels: 2, bytes: 5 * parameter('tokens') * parameter('hidden') * elementBytes };
    case 'layernorm-gelu':
      return kernel.cpu
        ? copy
        : { kernels: 2, bytes: 4 * parameter('tokens') * parameter('hidden') * elementBytes };
    case 'softmax':
      return copy;
    default:
      return null;
  }
}
