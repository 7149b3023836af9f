// The trace of each rank of a run of the generator that the tests plant faults with.
import { writeKinetoRanks } from '../../src/record/ranks/test-ranks.js';

const [folder, ranks, thousands] = process.argv.slice(2);
const layers = 50;
const kernelsALayer = 7;
const steps = Math.round((Number(thousands) * 1000) / layers / kernelsALayer);
const events = writeKinetoRanks(folder!, { seed: 1, ranks: Number(ranks), tensorRanks: Math.min(8, Number(ranks)), steps, layers });
console.log(JSON.stringify({ ranks: events.length, kernels: events.reduce((sum, one) => sum + one.kernels.length, 0) }));
