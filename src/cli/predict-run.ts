import { unreadKeysIssues } from '../llm/unread-keys.js';
import { writeFile } from 'node:fs/promises';
import { fusionAssumption, launchCosts, notModelled } from '../analyze/predict/assumptions.js';
import { calibrationOf } from '../analyze/predict/calibration.js';
import { checkPeak, type DeviceRoofs } from '../analyze/predict/device-roofs.js';
import { kernelTable } from '../analyze/predict/kernel-table.js';
import { measuredStages } from '../analyze/predict/measured.js';
import { pointsOf } from '../analyze/predict/points.js';
import { predict, type PredictPoint } from '../analyze/predict/predict.js';
import { workloadModel } from '../analyze/model-work.js';
import type { Architecture } from '../llm/architecture.js';
import { readArchitecture } from '../llm/read-architecture.js';
import { storageOf } from '../llm/memory-storage.js';
import { countParameters } from '../llm/parameters.js';
import type { Storage } from '../llm/storage.js';
import { document, type Document, type Issue } from '../model/document.js';
import type { PredictAssumption, PredictResult } from '../model/documents/predict.js';
import type { DType } from '../model/dtype.js';
import { InferscopeError } from '../model/errors.js';
import { openSession, type Session } from '../session/open.js';
import { withRows } from '../session/select.js';
import { asStorageFailure } from '../session/storage-failure.js';
import { findModel } from '../engines/model-files/find-model.js';
import { print, printDocument, terminalWidth } from './output.js';
import { predictCsv } from '../export/predict-csv.js';
import { predictDevice, type PredictTyped } from './predict-device.js';

/** Predicts, beside what was measured where a session is given; prints it. */
export async function runPredict(typed: PredictTyped): Promise<void> {
  const made = await predicted(typed);
  if (typed.csv !== undefined) {
    const path = typed.csv;
    await writeFile(path, predictCsv(made.data)).catch((error: unknown) => {
      throw asStorageFailure(error, { path, doing: 'write the CSV' });
    });
  }
  if (typed.json) printDocument(made);
  else {
    const { terminalView } = await import('../render/terminal/view.js');
    const { viewOf } = await import('../views/registry.js');
    print(terminalView(await viewOf({ kind: 'predict', document: made }), { width: terminalWidth() }));
  }
}

const measuredKernels = withRows('measured kernels', 'microbenchmarks');
const withStages = withRows('stages', 'stages', 'iterations');
const predictable = withRows('stages or measured kernels', 'stages', 'iterations', 'microbenchmarks');

interface PredictedModel {
  name: string;
  architecture: Architecture;
  storage: Storage;
}

/**
 * What `inferscope predict` prints.
 * @throws E_USAGE without a model or a known device, E_DTYPE, E_LENGTHS
 */
export async function predicted(typed: PredictTyped): Promise<Document<PredictResult>> {
  const session =
    typed.session === undefined ? null : await openSession(typed.session, undefined, predictable);
  const tables: Session[] = [];
  for (const one of typed.kernels) tables.push(await openSession(one, undefined, measuredKernels));
  const named = typed.model === undefined ? null : await findModel(typed.model);
  // Before anything is measured: a model that is not known needs no roofline.
  if (!named && session === null) throw noModel();
  const { roofs, issues } = await predictDevice(typed, session, tables);
  const model = named
    ? { name: named.name, ...configModel(named.config, typed.dtype ?? sessionDType(session), roofs) }
    : sessionModel(session!, typed.dtype);
  const computed = model.storage.weights.compute ?? model.storage.activations;
  checkPeak(roofs, computed);
  checkPeak(roofs, model.storage.activations);
  // A session of kernels only is a table: there is nothing to compare with.
  const measured =
    session && (withStages.holds(session.manifest) || !measuredKernels.holds(session.manifest))
      ? await measuredStages(session, {
          batchSize: typed.batchSize?.length === 1 ? typed.batchSize[0]! : null,
          inputLen: typed.contextLen?.length === 1 ? typed.contextLen[0]! : null,
          outputLen: typed.outputLen ?? null,
        })
      : [];
  const points = pointsOf(
    {
      batchSizes: typed.batchSize ?? null,
      contextLens: typed.contextLen ?? null,
      outputLen: typed.outputLen ?? null,
      launch: typed.launch ?? null,
      fusion: typed.fusion ?? null,
    },
    measured,
    { launch: roofs.kind === 'cpu' ? 'eager' : 'graph', fusion: 'standard' },
  );
  checkLengths(points, model);
  // A session that measured kernels itself needs no other's.
  const own = tables.length === 0 && session ? await kernelTable([session]) : [];
  if (own.length > 0) tables.push(session!);
  const table = own.length > 0 ? own : tables.length > 0 ? await kernelTable(tables) : null;
  if (table) checkTable(table, typed.kernels);
  const { stages, validation, error } = predict({ model, roofs, points, table });
  const result: PredictResult = {
    model: {
      name: model.name,
      family: model.architecture.family,
      layers: model.architecture.layers.length,
      parameters: countParameters(model.architecture).total,
    },
    dtype: model.storage.activations,
    weight_format: model.storage.weights.name,
    device: {
      kind: roofs.kind,
      name: roofs.name,
      roofs: roofs.roofs,
      peak_flops_per_s: roofs.peak(computed),
      peak_dtype: computed,
      bandwidth_bytes_per_s: roofs.bandwidth(Infinity),
      launch_ns: roofs.launchNs,
      graph_node_ns: roofs.graphNodeNs,
    },
    table: table && { sessions: tables.map(({ id }) => id), cases: table.length, validation },
    assumptions: assumptionsOf(points, roofs),
    not_modelled: [...notModelled],
    stages,
    calibration: calibrationOf(roofs, points[0]!.fusion),
    error,
  };
  return document('predict', '1.2', result, [
    ...issues,
    ...unreadKeysIssues(model.architecture),
    ...issuesOf(result),
  ]);
}

function assumptionsOf(points: readonly PredictPoint[], roofs: DeviceRoofs): PredictAssumption[] {
  const all = points.flatMap(({ launch, fusion }) => [
    ...launchCosts(launch, roofs).assumptions,
    fusionAssumption(fusion, roofs.kind === 'cpu' ? 'eager' : launch),
  ]);
  return [...new Map(all.map((one) => [one.text, one])).values()];
}

/** A session that was measured in a dtype is compared in it. */
function sessionDType(session: Session | null): DType | undefined {
  const model = session?.manifest.workload ? workloadModel(session.manifest.workload) : null;
  return model && 'storage' in model ? model.storage.activations : undefined;
}

function sessionModel(session: Session, dtype: DType | undefined): PredictedModel {
  const { workload } = session.manifest;
  const found = workload ? workloadModel(workload) : null;
  if (!workload?.model || !found || !('architecture' in found)) throw noModel(session.id);
  const storage =
    dtype === undefined ? found.storage : storageOf({ torch_dtype: found.storage.activations }, { dtype });
  return { name: workload.model.name, architecture: found.architecture, storage };
}

function configModel(
  config: Record<string, unknown>,
  dtype: DType | undefined,
  roofs: DeviceRoofs,
): { architecture: Architecture; storage: Storage } {
  const architecture = readArchitecture(config);
  if (roofs.kind === 'gpu') return { architecture, storage: storageOf(config, { dtype }) };
  const storage = storageOf({ torch_dtype: 'float32' }, { dtype });
  // The embedded engine multiplies int4 weights in int8 (docs/llm-arithmetic.md).
  if (dtype === 'int4') storage.weights = { ...storage.weights, compute: 'int8' };
  return { architecture, storage };
}

function checkLengths(points: readonly PredictPoint[], { name, architecture }: PredictedModel): void {
  const { maxPositions } = architecture;
  const longest = points.reduce(
    (most, point) => (point.contextLen + point.outputLen > most.contextLen + most.outputLen ? point : most),
    points[0]!,
  );
  const needed = longest.contextLen + longest.outputLen;
  if (maxPositions === null || needed <= maxPositions || longest.measured.length > 0) return;
  throw new InferscopeError('E_LENGTHS', {
    what: `${name} takes ${maxPositions} tokens, not ${longest.contextLen} + ${longest.outputLen}`,
    why: 'Its config.json says so (max_position_embeddings).',
    fix: `Type for example: --context-len ${Math.max(1, maxPositions - longest.outputLen)}`,
  });
}

function checkTable(table: readonly unknown[], typed: readonly string[]): void {
  if (table.length > 0) return;
  throw new InferscopeError('E_USAGE', {
    what: `no measured kernels in ${typed.join(', ')}`,
    why: 'The sessions hold no case of a kernel that was measured.',
    fix: 'inferscope kernels --from-model config.json measures those of a model; inferscope session list shows sessions.',
  });
}

function noModel(session?: string): InferscopeError {
  return new InferscopeError('E_USAGE', {
    what: session === undefined ? 'no model was given' : `session ${session} does not say which model it ran`,
    why: 'A prediction starts from the dimensions in a config.json.',
    fix: 'Type for example: inferscope predict --model llama-3.1-8b --gpu "NVIDIA H200"',
  });
}

function issuesOf({ stages, device, table, calibration }: PredictResult): Issue[] {
  const issues: Issue[] = [];
  if (table === null && calibration.status === 'not_calibrated') {
    issues.push({
      code: 'not_calibrated',
      severity: 'warning',
      text: 'Not calibrated: no measured kernels were given, and no measurement of such an engine on this device is recorded. The launched time is a lower estimate, and its error is not known. inferscope kernels --from-model measures the kernels.',
    });
  }
  const above = stages.filter(({ measured }) => measured.some((one) => one.above_measurement));
  if (above.length > 0) {
    issues.push({
      code: 'roofline_above_measurement',
      severity: 'warning',
      text: `The roofline is above the measurement in ${above.length} stages: model, dtype or roofs are not those of the session (accounting fault).`,
      count: above.length,
    });
  }
  const far = stages.filter(({ beyond_table_share: share }) => (share ?? 0) > 0.1);
  if (far.length > 0) {
    issues.push({
      code: 'beyond_table',
      severity: 'warning',
      text: `In ${far.length} stages more than a tenth of the time is of kernels outside the table: extrapolated or assumed, marked ~. inferscope kernels --from-model with their batch sizes and contexts measures them.`,
      count: far.length,
    });
  }
  if (device.kind === 'gpu' && device.roofs === 'data-sheet') {
    issues.push({
      code: 'data_sheet_roofs',
      severity: 'info',
      text: 'The roofs are the data sheet’s, which no kernel reaches: inferscope roofline, on its machine, measures them.',
    });
  }
  return issues;
}
