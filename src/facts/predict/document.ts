import { peakName } from '../../vocabulary/peaks.js';
import type { Architecture } from '../../llm/architecture.js';
import { countParameters } from '../../llm/parameters.js';
import { architectureIssues } from '../../llm/architecture-issues.js';
import { document, type Document, type Issue } from '../../model/document.js';
import {
  type Fusion,
  type Launch,
  type PredictAssumption,
  type PredictResult,
  predictVersion,
} from '../../model/documents/predict.js';
import { InferscopeError } from '../../model/errors.js';
import type { Session } from '../../session/open.js';
import { withRows } from '../../session/select.js';
import { fusionAssumption, launchCosts, notModeled } from './assumptions.js';
import { calibrationOf } from './calibration.js';
import { checkPeak, type DeviceRoofs } from './device-roofs.js';
import type { StageModel } from './fused-kernel.js';
import { readKernelTable } from './kernel-table.js';
import { type MeasuredStageTime, readMeasuredStages } from './measured.js';
import { pointsOf } from './points.js';
import { predict, type PredictPoint, workingSetOf } from './predict.js';
import { weightFormatLabel } from '../../vocabulary/weight-formats.js';
import { formatGb, formatSetting, plural } from '../../vocabulary/format.js';
import { gpuSheet } from '../../hardware/gpu-peaks.js';
import { lengthWords } from '../../vocabulary/workload.js';

export const measuredKernels = withRows('measured kernels', 'microbenchmarks');
const withStages = withRows('stages', 'stages', 'iterations');

/** Requested prediction. Missing values come from the session, else from defaults. */
interface PredictRequest {
  batchSize?: number[];
  inputLen?: number[];
  outputLen?: number;
  launch?: Launch;
  fusion?: Fusion;
}

export interface PredictedModel extends StageModel {
  name: string;
}

/**
 * Predicted stages of a model on a device, next to a session's measurements, from the kernels measured in `tables`.
 * @param tables sessions with measured kernels; without one those of `session`
 * @param ranAs weight format of the session's run, if the requested one may be another
 * @throws E_USAGE without measured kernels in `tables`; E_DTYPE without a peak; E_LENGTHS
 */
export async function predictDocument(
  model: PredictedModel,
  roofs: DeviceRoofs,
  requested: PredictRequest,
  {
    session,
    tables: tableSessions,
    ranAs = null,
  }: { session: Session | null; tables: readonly Session[]; ranAs?: string | null },
): Promise<Document<PredictResult>> {
  const computeDtype = model.storage.weights.compute ?? model.storage.activations;
  checkPeak(roofs, computeDtype);
  checkPeak(roofs, model.storage.activations);
  // A session with only kernels is a table, and has no stages to compare with.
  const measured =
    session && (withStages.matches(session.manifest) || !measuredKernels.matches(session.manifest))
      ? await readMeasuredStages(session, {
          batchSize: requested.batchSize?.length === 1 ? requested.batchSize[0]! : null,
          inputLen: requested.inputLen?.length === 1 ? requested.inputLen[0]! : null,
          outputLen: requested.outputLen ?? null,
        })
      : [];
  const points = pointsOf(
    {
      batchSizes: requested.batchSize ?? null,
      inputLens: requested.inputLen ?? null,
      outputLen: requested.outputLen ?? null,
      launch: requested.launch ?? null,
      fusion: requested.fusion ?? null,
    },
    measured,
    { launch: roofs.kind === 'cpu' ? 'eager' : 'graph', fusion: 'standard' },
  );
  checkLengths(points, model);
  // A session with measured kernels uses its own.
  const sessionTable = tableSessions.length === 0 && session ? await readKernelTable([session]) : [];
  const tables = sessionTable.length > 0 ? [session!] : tableSessions;
  const table =
    sessionTable.length > 0 ? sessionTable : tables.length > 0 ? await readKernelTable(tables) : null;
  if (table?.length === 0) throw noMeasuredKernels(tables);
  const isOther = ranAs !== null && ranAs !== model.storage.weights.name;
  const compared = isOther ? points.map((point) => ({ ...point, measured: [] })) : points;
  const { stages, validation, error } = predict({ model, roofs, points: compared, table });
  const [first] = points;
  const workingSet = workingSetOf(first!.outputLen > 1 ? 'decode' : 'prefill', first!, model);
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
      peak_flops_per_s: roofs.peak(computeDtype),
      peak_dtype: peakName(computeDtype, roofs.ranAs(computeDtype)),
      bandwidth_bytes_per_s: roofs.bandwidth(workingSet),
      bandwidth_level: roofs.bandwidthLevel(workingSet),
      launch_ns: roofs.launchNs,
      graph_node_ns: roofs.graphNodeNs,
    },
    table: table && { sessions: tables.map(({ id }) => id), cases: table.length, validation },
    assumptions: assumptionsOf(points, roofs),
    not_modeled: [...notModeled],
    stages,
    calibration: calibrationOf(roofs, points[0]!.fusion),
    error,
  };
  return document('predict', predictVersion, result, [
    ...architectureIssues(model.architecture),
    ...(isOther
      ? [
          {
            code: 'other_dtype',
            severity: 'warning',
            text: `The session ran in ${weightFormatLabel(ranAs)}: its times are not compared with a prediction in ${weightFormatLabel(model.storage.weights.name)}.`,
          } satisfies Issue,
        ]
      : []),
    ...memoryIssues(points, model, roofs),
    ...otherSizesIssues(points, measured),
    ...issuesOf(result),
  ]);
}

/** A prediction for a model that one GPU cannot hold, which a session's measurement would disprove. */
function memoryIssues(points: readonly PredictPoint[], model: PredictedModel, roofs: DeviceRoofs): Issue[] {
  const sheet = roofs.kind === 'gpu' ? gpuSheet(roofs.name) : null;
  const largest = Math.max(...points.map((point) => workingSetOf('decode', point, model)));
  if (sheet === null || largest < sheet.memoryGb * 1e9) return [];
  return [
    {
      code: 'out_of_memory',
      severity: 'warning',
      text: `Weights and KV cache take ${formatGb(largest)} and do not fit into the ${formatSetting(sheet.memoryGb, 'GB')} of ${roofs.name}: the times are those of one GPU with more memory. For several GPUs, inferscope estimate --tensor-parallel-size computes the memory of each.`,
    },
  ];
}

/** Why a session's times are missing next to predictions of other sizes. */
function otherSizesIssues(points: readonly PredictPoint[], measured: readonly MeasuredStageTime[]): Issue[] {
  if (measured.length === 0 || points.some((point) => point.measured.length > 0)) return [];
  const sizes = ({ batchSize, inputLen, outputLen }: MeasuredStageTime) =>
    `batch ${batchSize}, prompt ${inputLen}, output ${outputLen}`;
  return [
    {
      code: 'other_sizes',
      severity: 'warning',
      text: `The session ran ${[...new Set(measured.map(sizes))].slice(0, 3).join('; ')}: its times are not compared with predictions of other sizes.`,
    },
  ];
}

function assumptionsOf(points: readonly PredictPoint[], roofs: DeviceRoofs): PredictAssumption[] {
  const all = points.flatMap(({ launch, fusion }) => [
    ...launchCosts(launch, roofs).assumptions,
    fusionAssumption(fusion, roofs.kind === 'cpu' ? 'eager' : launch),
  ]);
  return [...new Map(all.map((assumption) => [assumption.text, assumption])).values()];
}

function checkLengths(points: readonly PredictPoint[], { name, architecture }: PredictedModel): void {
  const { maxPositions, encoder } = architecture;
  if (encoder) return checkEncoderDecoder(points, architecture, name);
  const longest = points.reduce(
    (most, point) => (point.inputLen + point.outputLen > most.inputLen + most.outputLen ? point : most),
    points[0]!,
  );
  const needed = longest.inputLen + longest.outputLen;
  if (maxPositions === null || needed <= maxPositions || longest.measured.length > 0) return;
  throw new InferscopeError('E_LENGTHS', {
    what: `${lengthWords(longest.inputLen, longest.outputLen)} exceed the context of ${name} (${plural(maxPositions, 'token')})`,
    why: 'Its config.json has this limit (max_position_embeddings).',
    fix: `Type for example: --input-len ${Math.max(1, maxPositions - longest.outputLen)}`,
  });
}

/** The source has the encoder's positions, the output the decoder's. */
function checkEncoderDecoder(
  points: readonly PredictPoint[],
  { maxPositions, encoder }: Architecture,
  name: string,
): void {
  const [sources, outputs] = [encoder!.positionRows || Infinity, maxPositions ?? Infinity];
  const tooLong = points.find(({ inputLen, outputLen }) => inputLen > sources || outputLen > outputs);
  if (!tooLong) return;
  throw new InferscopeError('E_LENGTHS', {
    what: `${lengthWords(tooLong.inputLen, tooLong.outputLen)} exceed the positions of ${name}`,
    why: 'Its config.json limits the source of its encoder and the output of its decoder.',
    fix: `Type at most --input-len ${Math.min(sources, tooLong.inputLen)} --output-len ${Math.min(outputs, tooLong.outputLen)}`,
  });
}

export function noMeasuredKernels(tables: readonly Session[]): InferscopeError {
  return new InferscopeError('E_USAGE', {
    what: `no measured kernels in ${tables.map(({ id }) => id).join(', ')}`,
    why: 'The sessions have no measured kernel cases.',
    fix: 'inferscope kernels --from-model config.json measures those of a model; inferscope session list shows sessions.',
  });
}

function issuesOf({ stages, device, table, calibration }: PredictResult): Issue[] {
  const issues: Issue[] = [];
  if (table === null && calibration.status === 'not_calibrated') {
    issues.push({
      code: 'not_calibrated',
      severity: 'warning',
      text: 'Not calibrated: no measured kernels were given, and no engine with these assumptions was measured on this device. Expect longer times than the launched ones. inferscope kernels --from-model measures the kernels.',
    });
  }
  const above = stages.filter(({ measured }) => measured.some((comparison) => comparison.above_measurement));
  if (above.length > 0) {
    issues.push({
      code: 'roofline_above_measurement',
      severity: 'warning',
      text: `The roofline is above the measurement in ${plural(above.length, 'stage')}: model, dtype or roofs do not match the session.`,
      count: above.length,
    });
  }
  const beyondTable = stages.filter(({ beyond_table_share: share }) => (share ?? 0) > 0.1);
  if (beyondTable.length > 0) {
    issues.push({
      code: 'beyond_table',
      severity: 'warning',
      text: `In ${plural(beyondTable.length, 'stage')} more than 10 % of the time is from kernels outside the table: extrapolated or assumed, marked ~. Measure them with inferscope kernels --from-model with their batch sizes and contexts.`,
      count: beyondTable.length,
    });
  }
  if (device.kind === 'gpu' && device.roofs === 'data-sheet') {
    issues.push({
      code: 'data_sheet_roofs',
      severity: 'info',
      text: 'The roofs are data-sheet values, which no kernel reaches: run inferscope roofline on its machine to measure them.',
    });
  }
  return issues;
}
