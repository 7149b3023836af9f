import {
  measuredKernels,
  noMeasuredKernels,
  predictDocument,
  type PredictedModel,
} from '../facts/predict/document.js';
import type { DeviceRoofs } from '../facts/predict/device-roofs.js';
import { workloadModel } from '../facts/model-work.js';
import type { Architecture } from '../llm/architecture.js';
import { readAnyArchitecture } from '../llm/read-architecture.js';
import { storageOf } from '../llm/memory-storage.js';
import type { Storage } from '../llm/storage.js';
import type { Document } from '../model/document.js';
import type { PredictResult } from '../model/documents/predict.js';
import type { DType } from '../model/dtype.js';
import { InferscopeError } from '../model/errors.js';
import { openSession, type Session } from '../session/open.js';
import { withRows } from '../session/select.js';
import { writeAtomically } from '../model/atomic-write.js';
import { asStorageFailure } from '../vocabulary/storage-failure.js';
import { findModel } from '../engines/model-files/find-model.js';
import { print, printDocument, terminalWidth } from './output.js';
import { predictCsv } from '../export/predict-csv.js';
import { predictDevice, type PredictOptions } from './predict-device.js';

/** Predicts and prints the result, next to measured times if a session is given. */
export async function runPredict(options: PredictOptions): Promise<void> {
  const prediction = await predictDocumentOf(options);
  if (options.csv !== undefined) {
    const path = options.csv;
    try {
      writeAtomically(path, predictCsv(prediction.data));
    } catch (error) {
      throw asStorageFailure(error, { path, doing: 'write the CSV' });
    }
  }
  if (options.json) printDocument(prediction);
  else {
    const { terminalView } = await import('../render/terminal/view.js');
    const { viewOf } = await import('../views/registry.js');
    print(terminalView(await viewOf({ kind: 'predict', document: prediction }), { width: terminalWidth() }));
  }
}

const predictable = withRows('stages or measured kernels', 'stages', 'iterations', 'microbenchmarks');

/**
 * Builds the result of `inferscope predict`.
 * @throws E_USAGE without a model or a known device, E_DTYPE, E_LENGTHS
 */
export async function predictDocumentOf(options: PredictOptions): Promise<Document<PredictResult>> {
  const session =
    options.session === undefined ? null : await openSession(options.session, undefined, predictable);
  const tables: Session[] = [];
  for (const selector of options.kernels)
    tables.push(await openSession(selector, undefined, measuredKernels));
  if (tables.length > 0 && !tables.some(({ manifest }) => measuredKernels.matches(manifest)))
    throw noMeasuredKernels(tables);
  const givenModel = options.model === undefined ? null : await findModel(options.model);
  // A roofline is measured only for a prediction that can be made.
  if (!givenModel && session === null) throw noModel();
  const modelOfSession = givenModel === null ? sessionModel(session!) : null;
  const { roofs, issues: deviceIssues } = await predictDevice(options, session, tables);
  const model = givenModel
    ? {
        name: givenModel.name,
        ...configModel(givenModel.config, options.dtype ?? sessionDType(session), roofs),
      }
    : modelIn(options.dtype, modelOfSession!, roofs);
  const { issues, ...document } = await predictDocument(model, roofs, options, {
    session,
    tables,
    ranAs: options.dtype === undefined ? null : (modelOfSession?.storage.weights.name ?? null),
  });
  return { ...document, issues: [...deviceIssues, ...issues] };
}

/** A session is compared in the dtype it was measured in. */
function sessionDType(session: Session | null): DType | undefined {
  const model = session?.manifest.workload ? workloadModel(session.manifest.workload) : null;
  return model && 'storage' in model ? model.storage.activations : undefined;
}

function sessionModel(session: Session): PredictedModel {
  const { workload } = session.manifest;
  const found = workload ? workloadModel(workload) : null;
  if (!workload?.model || !found || !('architecture' in found)) throw noModel(session.id);
  return { name: workload.model.name, architecture: found.architecture, storage: found.storage };
}

function modelIn(dtype: DType | undefined, model: PredictedModel, { kind }: DeviceRoofs): PredictedModel {
  if (dtype === undefined) return model;
  const torchDType = model.storage.activations;
  return { ...model, storage: storageOf({ torch_dtype: torchDType }, { dtype, onCpu: kind === 'cpu' }) };
}

function configModel(
  config: Record<string, unknown>,
  dtype: DType | undefined,
  roofs: DeviceRoofs,
): { architecture: Architecture; storage: Storage } {
  const architecture = readAnyArchitecture(config);
  if (roofs.kind === 'gpu') return { architecture, storage: storageOf(config, { dtype }) };
  return { architecture, storage: storageOf({ torch_dtype: 'float32' }, { dtype, onCpu: true }) };
}

function noModel(session?: string): InferscopeError {
  return new InferscopeError('E_USAGE', {
    what: session === undefined ? '--model is missing' : `session ${session} does not say which model it ran`,
    why: 'A prediction needs the dimensions in a config.json.',
    fix: 'Type for example: inferscope predict --model llama-3.1-8b --gpu "NVIDIA H200"',
  });
}
