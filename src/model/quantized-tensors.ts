import { bytesPerElement, dtypes } from './dtype.js';
import type { ModelTensor } from './model-facts.js';

/** Scales, zero points and padding of float weights are below this share. */
const tolerance = 0.02;

/**
 * Storage format of the linear layers of a program's model if it is not `dtype`, by their bytes.
 * @returns null if they are not quantized
 */
export function quantizedTensors(
  tensors: readonly ModelTensor[],
  dtype: string,
): { name: string; bytesPerWeight: number } | null {
  const layerTensors = tensors.filter(({ path, module, bytes, shape }) => {
    const inLayer = path.includes('*') && shape.length === 2 && !path.includes('lora_');
    return inLayer && bytes > 0 && !/embed/i.test(module);
  });
  const runDType = dtypes.find((known) => known === dtype);
  const sum = (bytesOf: (tensor: ModelTensor) => number) =>
    layerTensors.reduce((total, tensor) => total + bytesOf(tensor) * tensor.count, 0);
  const weights = sum(({ shape }) => shape[0]! * shape[1]!);
  if (!runDType || weights === 0) return null;
  const bytesPerWeight = sum(({ bytes }) => bytes) / weights;
  if (bytesPerWeight > bytesPerElement[runDType] * (1 - tolerance)) return null;
  const [largest] = layerTensors.toSorted((a, b) => b.bytes * b.count - a.bytes * a.count);
  const { type, module, dtype: storedDType } = largest!;
  return { name: type ?? (module === 'Linear' ? storedDType : module), bytesPerWeight };
}
