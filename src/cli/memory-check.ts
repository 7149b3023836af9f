import { exceedsMemory, type ShapeSizes } from '../capture/onnx/memory-need.js';
import type { OnnxModel } from '../engines/onnx/onnx-model.js';
import { InferscopeError } from '../model/errors.js';

/**
 * Refuses a run whose weights, KV cache and activations cannot fit this machine's memory.
 * @throws E_OUT_OF_MEMORY
 */
export function fitsInMemory(model: OnnxModel, sizes: ShapeSizes): void {
  const why = exceedsMemory(model, sizes);
  if (why === null) return;
  const { batchSize, inputLen, outputLen } = sizes;
  throw new InferscopeError('E_OUT_OF_MEMORY', {
    what: `${model.name} at batch ${batchSize} with ${inputLen} + ${outputLen} tokens does not fit`,
    why,
    fix: 'Use a smaller --batch-size, --input-len or --output-len.',
  });
}
