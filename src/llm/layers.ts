import type { OpClass } from '../model/classes.js';
import type { DType } from '../model/dtype.js';
import type { Architecture } from './architecture.js';
import type { NecessaryOp } from './necessary-op.js';
import type { StageShape } from './shape.js';
import type { Storage } from './storage.js';
import { stageWork } from './work.js';
import { bytesOf } from './work-totals.js';
import { plural } from '../vocabulary/format.js';

/** Sizes of a module, or the sum of several. */
interface ModuleSizes {
  parameters: number;
  flops: number;
  /** Weights read. */
  weight_bytes: number;
  kv_read_bytes: number;
  kv_write_bytes: number;
  activation_in_bytes: number;
  activation_out_bytes: number;
  /** Sum of the bytes above. */
  bytes: number;
}

interface ModuleRow extends ModuleSizes {
  module: string;
  class: OpClass;
  /** dtype of the computation. */
  dtype: DType;
  /** Decoder layer; null outside the layers. */
  layer: number | null;
}

/** Layers with the same structure (attention, window, MLP), and the sums over their modules. */
interface LayerGroup {
  layers: number[];
  /** e.g. "attention 32 heads × 128, 8 KV heads; MLP 14336" */
  structure: string;
  modules: (ModuleSizes & { module: string; class: OpClass })[];
  total: ModuleSizes;
}

/** The table of `estimate --layers`. */
interface LayerTable {
  shape: StageShape;
  /** One row per module, in execution order. */
  rows: ModuleRow[];
  /** Rows outside the layers: embedding, final norm, lm_head. */
  outside: ModuleRow[];
  groups: LayerGroup[];
  total: ModuleSizes;
}

/**
 * Parameters, FLOPs, bytes and activation sizes of every module at a shape. Parameters sum to the model's total; FLOPs
 * and bytes to `totalWork(stageWork(…))`.
 * @throws E_LENGTHS for an impossible shape
 */
export function layerTable(a: Architecture, shape: StageShape, storage: Storage): LayerTable {
  const rows = stageWork(a, shape, storage).map(toRow);
  const groups = new Map<string, LayerGroup>();
  for (const layer of a.layers) {
    const { index, ...structure } = layer;
    const key = JSON.stringify(structure);
    const group = groups.get(key);
    if (group) group.layers.push(index);
    else
      groups.set(key, { layers: [index], structure: describeLayer(layer), modules: [], total: zeroSizes() });
  }
  for (const group of groups.values()) {
    const members = new Set(group.layers);
    const inGroup = rows.filter(({ layer }) => layer !== null && members.has(layer));
    group.total = addUp(inGroup);
    group.modules = [...groupByModule(inGroup)].map(([module, moduleRows]) => ({
      module,
      class: moduleRows[0]?.class ?? 'other',
      ...addUp(moduleRows),
    }));
  }
  return {
    shape,
    rows,
    outside: rows.filter(({ layer }) => layer === null),
    groups: [...groups.values()],
    total: addUp(rows),
  };
}

function groupByModule(rows: ModuleRow[]): Map<string, ModuleRow[]> {
  const groups = new Map<string, ModuleRow[]>();
  for (const row of rows) {
    const group = groups.get(row.module);
    if (group) group.push(row);
    else groups.set(row.module, [row]);
  }
  return groups;
}

function toRow(op: NecessaryOp): ModuleRow {
  return {
    module: op.name,
    class: op.class,
    dtype: op.dtype,
    layer: op.layer,
    parameters: op.parameters,
    flops: op.flops,
    weight_bytes: op.bytes.weights,
    kv_read_bytes: op.bytes.kv_read,
    kv_write_bytes: op.bytes.kv_write,
    activation_in_bytes: op.bytes.activations_in,
    activation_out_bytes: op.bytes.activations_out,
    bytes: bytesOf(op),
  };
}

function zeroSizes(): ModuleSizes {
  return {
    parameters: 0,
    flops: 0,
    weight_bytes: 0,
    kv_read_bytes: 0,
    kv_write_bytes: 0,
    activation_in_bytes: 0,
    activation_out_bytes: 0,
    bytes: 0,
  };
}

function addUp(rows: readonly ModuleSizes[]): ModuleSizes {
  const total = zeroSizes();
  const keys = Object.keys(total) as (keyof ModuleSizes)[];
  for (const row of rows) for (const key of keys) total[key] += row[key];
  return total;
}

function describeLayer({ attention, mlp }: Architecture['layers'][number]): string {
  const heads =
    attention.kind === 'latent'
      ? `latent attention ${attention.headCount} heads, rank ${attention.kvRank}`
      : attention.kind === 'recurrent'
        ? `${attention.form}, state ${attention.stateElements} elements`
        : `attention ${attention.headCount} heads × ${attention.headDim}` +
          (attention.kvHeadCount === attention.headCount
            ? ''
            : `, ${plural(attention.kvHeadCount, 'KV head')}`) +
          (attention.window === null
            ? ''
            : `, ${attention.chunked ? 'chunks of' : 'window'} ${attention.window}`) +
          (attention.sharedKv ? ', keys and values of an earlier layer' : '');
  if (mlp.kind === 'none') return heads;
  const inner =
    mlp.kind === 'dense'
      ? `MLP ${mlp.intermediateSize}`
      : `${mlp.expertCount} experts × ${mlp.intermediateSize}, ${mlp.expertsPerToken} per token` +
        (mlp.sharedIntermediateSize > 0 ? `, shared ${mlp.sharedIntermediateSize}` : '');
  return `${heads}; ${inner}`;
}
