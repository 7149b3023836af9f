// usage: generate FOLDER RANKS THOUSANDS_OF_KERNELS_PER_RANK. Writes one trace per rank (of the tests' generator, step by step) to FOLDER,
// and the planted clocks to FOLDER-clocks.json: the import estimates the offset in the middle of the run.
import { once } from 'node:events';
import { createWriteStream, mkdirSync, writeFileSync } from 'node:fs';
import { finished } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import {
  kinetoFile,
  kinetoHead,
  kinetoRows,
  playSteps,
  type RankEvents,
} from '../../src/record/ranks/test-ranks.js';

const [folder, rankCount, thousands] = process.argv.slice(2);
const ranks = Number(rankCount);
const layers = 50;
const kernelsPerLayer = 7;
const steps = Math.max(2, Math.round((Number(thousands) * 1000) / layers / kernelsPerLayer));
mkdirSync(folder!, { recursive: true });

const files = Array.from({ length: ranks }, (_, rank) => {
  const gzip = createGzip({ level: 1 });
  const ended = finished(gzip.pipe(createWriteStream(kinetoFile(folder!, rank))));
  gzip.write(`${JSON.stringify(kinetoHead(rank, ranks)).slice(0, -1)},"traceEvents":[`);
  return { gzip, ended };
});
let before = { kernels: 0, steps: 0 };
let kernels = 0;
let last: RankEvents[] = [];
for (const step of playSteps({ seed: 1, ranks, tensorRanks: Math.min(8, ranks), steps, layers })) {
  for (const [rank, rankEvents] of step.entries()) {
    const rows = kinetoRows(rankEvents, before).map((row) => JSON.stringify(row));
    const { gzip } = files[rank]!;
    if (!gzip.write(`${before.steps === 0 ? '' : ','}${rows.join(',')}`)) await once(gzip, 'drain');
    kernels += rankEvents.kernels.length;
  }
  // All ranks launch the same number of kernels.
  before = { kernels: before.kernels + step[0]!.kernels.length, steps: before.steps + 1 };
  last = step;
}
for (const { gzip } of files) gzip.end(']}');
await Promise.all(files.map(({ ended }) => ended));

const middleNs = last[0]!.steps.at(-1)!.end / 2;
const clocks = last.map(({ rank, clock: { offset_ns, drift_ppm } }) => ({
  rank,
  drift_ppm,
  middle_offset_ns: offset_ns + 1e-6 * drift_ppm * middleNs,
}));
writeFileSync(`${folder!}-clocks.json`, JSON.stringify(clocks));
console.log(JSON.stringify({ ranks, kernels }));
