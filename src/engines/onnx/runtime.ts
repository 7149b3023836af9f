import process from 'node:process';
import type * as Ort from 'onnxruntime-node';
import { InferscopeError, messageOf, systemErrorCode } from '../../model/errors.js';
import { installCommand } from '../../model/installation.js';
import { noTelemetry } from '../../model/no-telemetry.js';

export type OnnxRuntime = typeof Ort;

export const cpuSession = (threads: number): Ort.InferenceSession.SessionOptions => ({
  executionProviders: ['cpu'],
  executionMode: 'sequential',
  graphOptimizationLevel: 'all',
  intraOpNumThreads: threads,
  interOpNumThreads: 1,
  // 3 = errors only: warnings would go to stderr, which belongs to the caller.
  logSeverityLevel: 3,
});

/**
 * Loads onnxruntime-node (200 ms, 40 MB resident), installed on request; only called to run a model.
 * @throws E_ENGINE_MISSING if it is not installed or its library does not load here
 */
export async function loadOnnxRuntime(): Promise<OnnxRuntime> {
  // The library reads the variable from the process's own environment when it is loaded.
  process.env['ORT_DISABLE_TELEMETRY'] = noTelemetry.ORT_DISABLE_TELEMETRY;
  return importRuntime(() => import('onnxruntime-node'));
}

/** `load` is a parameter so that tests can pass a missing or broken package. */
export async function importRuntime(load: () => Promise<unknown>): Promise<OnnxRuntime> {
  try {
    const loaded = (await load()) as OnnxRuntime & { default?: OnnxRuntime };
    return loaded.InferenceSession ? loaded : loaded.default!;
  } catch (error) {
    const code = systemErrorCode(error);
    const missing = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND';
    throw new InferscopeError(
      'E_ENGINE_MISSING',
      {
        what: missing
          ? 'the embedded engine (onnxruntime-node) is not installed'
          : 'the embedded engine (onnxruntime-node) does not load on this machine',
        why: missing
          ? 'It is installed on request: it takes 290 MB, and only what runs a model on this CPU needs it.'
          : `${process.platform}-${process.arch}, Node ${process.versions.node}: ${messageOf(error)}`,
        fix: missing
          ? installCommand('onnxruntime-node')
          : `Reinstall it (${installCommand('onnxruntime-node')}), or profile another engine with: inferscope run -- <program>`,
      },
      { cause: error },
    );
  }
}
