// The trace of each rank of a run of the generator that the tests plant faults with; next to the folder the clocks that were planted.
import { writeFileSync } from 'node:fs';
import { writeKinetoRanks } from '../../src/record/ranks/test-ranks.js';

const [folder, ranks, thousands] = process.argv.slice(2);
const layers = 50;
const kernelsPerLayer = 7;
const steps = Math.max(2, Math.round((Number(thousands) * 1000) / layers / kernelsPerLayer));
const events = writeKinetoRanks(folder!, {
  seed: 1,
  ranks: Number(ranks),
  tensorRanks: Math.min(8, Number(ranks)),
  steps,
  layers,
});
const middleNs = events[0]!.steps.at(-1)!.end / 2;
const clocks = events.map(({ rank, clock: { offset_ns, drift_ppm } }) => ({
  rank,
  drift_ppm,
  middle_offset_ns: offset_ns + 1e-6 * drift_ppm * middleNs,
}));
writeFileSync(`${folder!}-clocks.json`, JSON.stringify(clocks));
console.log(
  JSON.stringify({ ranks: events.length, kernels: events.reduce((sum, one) => sum + one.kernels.length, 0) }),
);
