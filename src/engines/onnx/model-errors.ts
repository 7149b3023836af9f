import { InferscopeError } from '../../model/errors.js';

/** Error for models that the embedded engine cannot build; `is` completes "Its …", `can` says what it can build. */
export function unsupported(is: string, can: string): InferscopeError {
  return new InferscopeError('E_MODEL_ARCHITECTURE', {
    what: 'the embedded engine cannot build this architecture',
    why: `Its ${is}; ${can}.`,
    fix: 'Pass a folder with an ONNX export of the model (optimum-cli export onnx --model <id> <folder>), or --model llama-24m.',
  });
}
