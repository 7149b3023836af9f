import { bytesPerElement, dtypes } from './dtype.js';
import type { ModelTensor } from './model-facts.js';

/** Scales, zero points and paddings of float weights stay below this share. */
const tolerance = 0.02;

/**
 * How a program stores the linear layers of its model, where that is not `dtype`: by the bytes that they hold.
 * @returns null where they are plain
 */
export function quantizedTensors(
  tensors: readonly ModelTensor[],
  dtype: string,
): { name: string; bytesPerWeight: number } | null {
  const held = tensors.filter(({ path, module, bytes, shape }) => {
    const inLayer = path.includes('*') && shape.length === 2 && !path.includes('lora_');
    return inLayer && bytes > 0 && !/embed/i.test(module);
  });
  const ran = dtypes.find((known) => known === dtype);
  const sum = (of: (tensor: ModelTensor) => number) =>
    held.reduce((total, tensor) => total + of(tensor) * tensor.count, 0);
  const weights = sum(({ shape }) => shape[0]! * shape[1]!);
  if (!ran || weights === 0) return null;
  const bytesPerWeight = sum(({ bytes }) => bytes) / weights;
  if (bytesPerWeight > bytesPerElement[ran] * (1 - tolerance)) return null;
  const [largest] = held.toSorted((a, b) => b.bytes * b.count - a.bytes * a.count);
  const { type, module, dtype: stored } = largest!;
  return { name: type ?? (module === 'Linear' ? stored : module), bytesPerWeight };
}
