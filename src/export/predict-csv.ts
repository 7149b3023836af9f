import { csvRows } from './csv.js';
import type { PredictResult, PredictStage } from '../model/documents/predict.js';

function cells(stage: PredictStage, { model, dtype, device }: PredictResult): Record<string, unknown> {
  const [measured] = stage.measured;
  const residual = (cause: string) => measured?.residual.find((part) => part.cause === cause)?.ms ?? null;
  return {
    model: model.name,
    dtype,
    device: device.name,
    roofs: device.roofs,
    phase: stage.phase,
    batch_size: stage.batch_size,
    input_len: stage.input_len,
    output_len: stage.output_len,
    launch: stage.launch,
    fusion: stage.fusion,
    kernels: stage.kernels,
    flops: stage.flops,
    bytes: stage.bytes,
    roofline_ms: stage.roofline_ms.value,
    roofline_serial_ms: stage.roofline_serial_ms.value,
    launched_ms: stage.launched_ms.value,
    launched_low_ms: stage.launched_range_ms?.[0] ?? null,
    launched_high_ms: stage.launched_range_ms?.[1] ?? null,
    predicted_ms: stage.predicted_ms.value,
    predicted_error: stage.predicted_error,
    device_ms: stage.device_ms.value,
    host_ms: stage.host_ms.value,
    limited_by: stage.limited_by,
    beyond_table_share: stage.beyond_table_share,
    session: measured?.session ?? null,
    what: measured?.what ?? null,
    measured_ms: measured?.ms.value ?? null,
    roofline_ratio: measured?.roofline_ratio.value ?? null,
    table_ratio: measured?.table_ratio.value ?? null,
    launched_ratio: measured?.launched_ratio.value ?? null,
    residual_launch_bound_ms: residual('launch-bound'),
    residual_host_ms: residual('host'),
    residual_gemm_ms: residual('gemm'),
    residual_attention_ms: residual('attention'),
    residual_unfused_elementwise_ms: residual('unfused-elementwise'),
    residual_sampling_ms: residual('sampling'),
    residual_unattributed_ms: residual('unattributed'),
  };
}

/** One row per stage (and measurement of it); missing values are empty. */
export function predictCsv(result: PredictResult): string {
  const rows = result.stages.flatMap((stage) =>
    stage.measured.length > 1
      ? stage.measured.map((measurement) => cells({ ...stage, measured: [measurement] }, result))
      : [cells(stage, result)],
  );
  return csvRows(rows);
}
