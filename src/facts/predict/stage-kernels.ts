import type { NecessaryOp } from '../../llm/necessary-op.js';
import { samplingOp, stageWork } from '../../llm/work.js';
import { fusedKernel, type StageKernel, type StageModel, type StagePlan } from './fused-kernel.js';
import { unfusedKernels } from './unfused-kernels.js';

/** Operations that full fusion merges into neighboring GEMMs. */
const isFusable = (op: NecessaryOp): boolean =>
  op.class === 'norm' || (op.class === 'elementwise' && op.name !== 'experts_combine');

/** The necessary operations that remain separate at a level of fusion; the roofline counts them. */
export function unfusedOps(
  { architecture, storage }: StageModel,
  { shape, fusion }: StagePlan,
): NecessaryOp[] {
  const ops = stageWork(architecture, shape, storage);
  return fusion === 'full' ? ops.filter((op) => !isFusable(op)) : ops;
}

/** The kernels of a stage and its sampling. Equal kernels are counted together, in order of their first run. */
export function stageKernels(model: StageModel, plan: StagePlan): StageKernel[] {
  const { architecture, storage } = model;
  const ops = [...unfusedOps(model, plan), samplingOp(architecture, plan.shape, storage)];
  const kernels = ops.flatMap((op) => {
    // Kernels outside the layers use no dimension of a layer, so any layer will do.
    const layer = architecture.layers[op.layer ?? 0];
    if (!layer) return [];
    return plan.fusion === 'none'
      ? unfusedKernels(op, layer, model, plan)
      : [fusedKernel(op, layer, model, plan)];
  });
  return mergeEqual(kernels);
}

function mergeEqual(kernels: readonly StageKernel[]): StageKernel[] {
  const byKey = new Map<string, StageKernel>();
  for (const kernel of kernels) {
    const key = [
      kernel.op,
      kernel.kernel,
      kernel.dtype,
      JSON.stringify(kernel.params),
      kernel.flops,
      kernel.bytes,
    ].join(' ');
    const known = byKey.get(key);
    if (known) known.count += kernel.count;
    else byKey.set(key, { ...kernel });
  }
  return [...byKey.values()];
}
