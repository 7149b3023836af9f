import { dirname } from 'node:path';
import process from 'node:process';
import { openDecoder } from '../../engines/onnx/decoder.js';
import { packageVersion } from '../../hardware/environment.js';
import { recordVariable, recordWriter, type RecordWriter } from '../record-writer.js';
import { monotonicNs } from '../../model/clock.js';
import { serveEngineProcess } from './engine-process.js';
import { measurePoints } from './measure-points.js';
import type { WorkloadPlan, WorkloadProgress, WorkloadResult } from './plan.js';
import { mappedBytes, processMemory } from './process-memory.js';

/** Runs one launch of the workload; figures go to the record file, progress to the parent. */

interface Context {
  stopped: () => boolean;
  report: (progress: WorkloadProgress) => void;
}

serveEngineProcess<WorkloadPlan, WorkloadProgress, WorkloadResult>(run);

async function run(plan: WorkloadPlan, { stopped, report }: Context): Promise<WorkloadResult> {
  const { model, threads, points } = plan;
  const record = recordWriter(process.env[recordVariable]!, plan.executionId);
  record.clock();
  memoryPoint(record, 'baseline');
  record.add({
    type: 'model',
    name: model.name,
    config: model.config,
    dtype: model.dtype,
    quantization: model.quantization,
    weights: model.weights,
    weight_bytes: model.weight_bytes,
    tensor_parallel_size: 1,
    engine: { name: 'onnxruntime', version: packageVersion('onnxruntime-node') },
    device: 'cpu',
    threads,
  });
  record.flush();

  report({ type: 'phase', phase: 'load' });
  const loadStart = monotonicNs();
  const decoder = await openDecoder(model, {
    threads,
    contextLen: Math.max(...points.map(({ inputLen, outputLen }) => inputLen + outputLen)),
    ...(plan.profilePrefix === null ? {} : { profilePrefix: plan.profilePrefix }),
    ...(plan.graphOptimization === undefined ? {} : { graphOptimization: plan.graphOptimization }),
  });
  record.add({ type: 'stage', kind: 'load', name: 'load', ...wholeStage(loadStart) });

  const onWarm = () => memoryPoint(record, 'post_warmup');
  const measured = await measurePoints(decoder, plan, { record, stopped, report, onWarm });

  memoryPoint(record, 'peak', measured.peakRssBytes ?? 0);
  // The runtime maps the weights that its kernels read as they are in the file.
  const mapped = mappedBytes(dirname(model.modelPath));
  if (mapped !== null)
    record.add({
      type: 'memory',
      device: null,
      kind: 'model_file:end',
      bytes: mapped,
      point: null,
      source: '/proc/<pid>/smaps Rss',
    });
  const tracePath = plan.profilePrefix === null ? null : await decoder.endProfiling();
  record.clock();
  record.flush();
  await decoder.release();
  const { warmupIterations, stable } = measured;
  return { stopped: stopped(), tracePath, warmupIterations, stable };
}

function wholeStage(t_ns: number) {
  return {
    t_ns,
    end_ns: monotonicNs(),
    iteration: null,
    step: null,
    batch_size: null,
    new_tokens: null,
    context_tokens_sum: null,
    warmup: false,
  };
}

/** @param sampledBytes a high-water mark from before a reset */
function memoryPoint(
  record: RecordWriter,
  point: 'baseline' | 'post_warmup' | 'peak',
  sampledBytes = 0,
): void {
  const { rssBytes, peakRssBytes, source } = processMemory();
  const isPeak = point === 'peak' && peakRssBytes !== null;
  record.add({
    type: 'memory',
    device: null,
    kind: isPeak ? 'peak_rss' : 'rss',
    bytes: isPeak ? Math.max(peakRssBytes, sampledBytes) : rssBytes,
    point,
    source: peakRssBytes === null ? source : `${source} ${isPeak ? 'VmHWM' : 'VmRSS'}`,
  });
}
