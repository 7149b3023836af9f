import { InferscopeError } from '../../model/errors.js';

/** The embedded engine cannot build this; `is` completes "Its …", `can` says what it does build. */
export function unsupported(is: string, can: string): InferscopeError {
  return new InferscopeError('E_MODEL_ARCHITECTURE', {
    what: 'the embedded engine cannot build this architecture',
    why: `Its ${is}; ${can}.`,
    fix: 'Pass a folder with an ONNX export of the model (optimum-cli export onnx --model <id> <folder>), or --model llama-24m.',
  });
}
