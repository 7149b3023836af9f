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
  const sampling = samplingOp(architecture, plan.shape, storage);
  return mergeEqual([
    ...stackPlans(plan).flatMap((stack) => kernelsOf(unfusedOps(model, stack), model, stack)),
    ...kernelsOf([sampling], model, plan),
  ]);
}

/** An encoder and the decoder's first step, which have different tokens. */
function stackPlans(plan: StagePlan): StagePlan[] {
  const { shape } = plan;
  if (shape.source?.step !== 'encode-and-decode') return [plan];
  const { tokens } = shape.source;
  const encode = {
    ...shape,
    newTokens: tokens,
    contextTokens: 0,
    source: { step: 'encode', tokens },
  } as const;
  return [
    { ...plan, shape: encode },
    { ...plan, shape: { ...shape, source: { step: 'first', tokens } } },
  ];
}

function kernelsOf(ops: readonly NecessaryOp[], model: StageModel, plan: StagePlan): StageKernel[] {
  return ops.flatMap((op) => {
    // Kernels outside the layers use no dimension of a layer, so any layer will do.
    const layer = model.architecture.layers[op.layer ?? 0];
    if (!layer) return [];
    return plan.fusion === 'none'
      ? unfusedKernels(op, layer, model, plan)
      : [fusedKernel(op, layer, model, plan)];
  });
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
