import { figure } from '../../model/figure.js';
import { sessionOf } from '../../facts/test-session.js';
import type { Home } from '../../session/home.js';
import type { Side, SideKernel } from './side.js';

/** A side with one phase, made by hand. */
export async function testSide(
  home: Home,
  ms: number,
  half: number,
  kernels: Partial<SideKernel>[],
  tiles: string[],
  tokens = 1,
): Promise<Side> {
  const session = await sessionOf(home, {}, { kind: 'import', roofline: null });
  return {
    session,
    source: 'hand',
    focus: {},
    waterfalls: [],
    ranks: null,
    stages: [
      {
        phase: 'decode',
        value: {
          instances: 8,
          duration_ms: figure(ms, 'ms', 'hand', { n: 8, ci95: [ms - half, ms + half] }),
          busy_ms: 1,
          main_cause: 'host',
          kernels: 3,
          launches: 3,
          tokens,
          mfu: figure((0.01 * tokens) / ms, 'ratio', 'hand'),
        },
        mfu_ms: ms,
      },
    ],
    kernels: kernels.map((kernel) => ({
      phase: 'decode',
      name: 'k',
      short_name: kernel.name ?? 'k',
      class: 'gemm',
      tile: null,
      count: 1,
      ms: ((kernel.count ?? 1) * (kernel.mean_ns ?? 1000)) / 1e6,
      mean_ns: 1000,
      ...kernel,
    })),
    attention_operators: null,
    gemms: [{ phase: 'decode', tiles }],
    clocks: [],
  };
}
