import {
  closeBench,
  gemmFloat32,
  gemmInt8,
  gemmInteger,
  openBench,
  readByGemv,
  readByInt4Gemv,
  readByReduce,
} from '../../engines/onnx/microbenchmark.js';
import { InferscopeError } from '../../model/errors.js';
import { serveEngineProcess } from './engine-process.js';
import type { RooflineMeasurements, RooflinePlan, RooflineProgress } from './roofline-plan.js';
import { formatBytes } from '../../vocabulary/format.js';

/** Measures this machine's rooflines through ONNX Runtime, in its own process, like the workload. */

serveEngineProcess<RooflinePlan, RooflineProgress, RooflineMeasurements>(measure);

const mebibyte = 2 ** 20;
/** Working sets from inside the caches to far beyond most caches. */
const sizes = [4, 8, 16, 32, 64, 128, 256, 512, 1024].map((size) => size * mebibyte);
/** End of the curve on machines with small caches. */
const minLargest = 256 * mebibyte;

/** Weights of a small model, and a batch that shows the gain of sharing them. */
const streamBytes = 96 * mebibyte;
const streamBatch = 8;

/** Square sizes for the library's best rate, a flat one for the shape of prefill. */
const gemms: [number, number, number][] = [
  [512, 512, 512],
  [1024, 1024, 1024],
  [2048, 2048, 2048],
  [128, 2048, 2048],
];

async function measure(
  plan: RooflinePlan,
  { stopped, report }: { stopped: () => boolean; report: (progress: RooflineProgress) => void },
): Promise<RooflineMeasurements> {
  const result: RooflineMeasurements = { compute: [], reads: [], streams: [] };
  const bench = await openBench(plan.threads, plan.scratch);
  const largest = Math.max(minLargest, 2 * (plan.lastLevelCacheBytes ?? 0));
  const measured = sizes.filter((size) => size <= plan.maxBytes && size < 2 * largest);
  const steps: [string, () => Promise<unknown>][] = [
    ...gemms.flatMap(([m, k, n]): [string, () => Promise<unknown>][] => [
      [`float32 ${m}×${n}×${k}`, async () => result.compute.push(await gemmFloat32(bench, m, k, n))],
      [`int8 ${m}×${n}×${k}`, async () => result.compute.push(await gemmInt8(bench, m, k, n))],
      [`int8 ${m}×${n}×${k}`, async () => result.compute.push(await gemmInteger(bench, m, k, n))],
    ]),
    ...measured.flatMap((size): [string, () => Promise<unknown>][] => [
      [`read ${formatBytes(size)}`, async () => result.reads.push(await readByGemv(bench, size))],
      [`read ${formatBytes(size)}`, async () => result.reads.push(await readByReduce(bench, size))],
    ]),
    ...[1, streamBatch].flatMap((batch): [string, () => Promise<unknown>][] => [
      [`float32 × ${batch}`, async () => result.streams.push(await readByGemv(bench, streamBytes, batch))],
      // int4 weights have about a seventh of the bytes, so a larger share of a model would fit the caches.
      [
        `int4 × ${batch}`,
        async () => result.streams.push(await readByInt4Gemv(bench, streamBytes / 6, batch)),
      ],
    ]),
  ];
  try {
    for (const [index, [label, run]] of steps.entries()) {
      if (stopped()) throw interrupted();
      report({ done: index, total: steps.length, label });
      await run();
    }
  } finally {
    await closeBench(bench);
  }
  return result;
}

function interrupted(): InferscopeError {
  return new InferscopeError('E_INTERRUPTED', {
    what: 'stopped while measuring the roofline',
    why: 'Ctrl-C or a signal stopped it.',
    fix: 'Run it again; the measurement takes about 20 s and is then cached.',
  });
}
