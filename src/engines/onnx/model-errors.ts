import { InferscopeError } from '../../model/errors.js';

/** Error for models that the embedded engine cannot build; `difference` completes "Its …", `supported` states what the engine can build. */
export function unsupported(difference: string, supported: string): InferscopeError {
  return new InferscopeError('E_MODEL_ARCHITECTURE', {
    what: 'the embedded engine cannot build this architecture',
    why: `Its ${difference}; ${supported}.`,
    fix: 'Pass a folder with an ONNX export of the model (optimum-cli export onnx --model <id> <folder>), or --model llama-24m.',
  });
}
