import { checkGrid } from '../model/grid.js';
import { benchPoint, type BenchPart, type BenchPoint } from '../model/bench.js';

/** Lists as typed; undefined uses the command's defaults. */
interface TypedSizes {
  batchSize?: number[];
  inputLen?: number[];
  outputLen?: number[];
  /** sequence: all prompts × all outputs. */
  grid?: boolean;
}

const usual = { input: 128, output: 64 };
const batches = [1, 4, 8, 16, 32];
const prompts = { list: [10, 50, 200, 1000], output: 50 };
const outputs = { list: [50, 100, 200], prompt: 200 };

/**
 * Returns the shapes to measure, each once, with the benchmarks that use it.
 * @throws E_USAGE for too many shapes
 */
export function pointsOf(verb: BenchPart | 'suite', sizes: TypedSizes): BenchPoint[] {
  const sequenceOnly = verb === 'sequence';
  const parts: BenchPoint[] = [];
  if (verb === 'latency' || verb === 'suite') parts.push(...latency(sizes, verb === 'suite'));
  if (verb === 'throughput' || verb === 'suite') parts.push(...throughput(sizes));
  if (sequenceOnly || verb === 'suite') parts.push(...sequence(sizes, sequenceOnly));
  return unique(parts);
}

function latency({ batchSize, inputLen, outputLen }: TypedSizes, suite: boolean): BenchPoint[] {
  // In a suite the list of batch sizes applies to throughput.
  const batchSizes = suite ? [1] : (batchSize ?? [1]);
  return product(['latency'], batchSizes, [inputLen?.[0] ?? usual.input], [outputLen?.[0] ?? usual.output]);
}

function throughput({ batchSize, inputLen, outputLen }: TypedSizes): BenchPoint[] {
  return product(
    ['throughput'],
    batchSize ?? batches,
    [inputLen?.[0] ?? usual.input],
    [outputLen?.[0] ?? usual.output],
  );
}

/**
 * All prompt lengths at one output length and all output lengths at one prompt length, or the full grid. The fixed
 * length is the default if the list has it, else the first of the list.
 */
function sequence({ batchSize, inputLen, outputLen, grid }: TypedSizes, alone: boolean): BenchPoint[] {
  const batchSizes = alone ? (batchSize ?? [1]) : [1];
  const allPrompts = inputLen ?? prompts.list;
  const allOutputs = outputLen ?? outputs.list;
  if (grid) return product(['sequence'], batchSizes, allPrompts, allOutputs);
  const output = allOutputs.includes(prompts.output) ? prompts.output : allOutputs[0]!;
  const prompt = allPrompts.includes(outputs.prompt) ? outputs.prompt : allPrompts[0]!;
  return [
    ...product(['sequence'], batchSizes, allPrompts, [output]),
    ...product(['sequence'], batchSizes, [prompt], allOutputs),
  ];
}

function product(
  parts: BenchPart[],
  batchSizes: readonly number[],
  inputLens: readonly number[],
  outputLens: readonly number[],
): BenchPoint[] {
  const sizes = {
    '--batch-size': batchSizes.length,
    '--input-len': inputLens.length,
    '--output-len': outputLens.length,
  };
  checkGrid(sizes, 'points');
  return batchSizes.flatMap((batch) =>
    inputLens.flatMap((input) => outputLens.map((output) => benchPoint(parts, batch, input, output))),
  );
}

function unique(points: readonly BenchPoint[]): BenchPoint[] {
  const byName = new Map<string, BenchPoint>();
  for (const point of points) {
    const known = byName.get(point.point);
    if (!known) byName.set(point.point, { ...point, parts: [...point.parts] });
    else for (const part of point.parts) if (!known.parts.includes(part)) known.parts.push(part);
  }
  return [...byName.values()];
}
