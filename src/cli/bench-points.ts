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

const defaults = { input: 128, output: 64 };
const defaultBatchSizes = [1, 4, 8, 16, 32];
const promptAxis = { list: [10, 50, 200, 1000], output: 50 };
const outputAxis = { list: [50, 100, 200], prompt: 200 };

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
  return allPoints(
    ['latency'],
    batchSizes,
    [inputLen?.[0] ?? defaults.input],
    [outputLen?.[0] ?? defaults.output],
  );
}

function throughput({ batchSize, inputLen, outputLen }: TypedSizes): BenchPoint[] {
  return allPoints(
    ['throughput'],
    batchSize ?? defaultBatchSizes,
    [inputLen?.[0] ?? defaults.input],
    [outputLen?.[0] ?? defaults.output],
  );
}

/**
 * All prompt lengths at one output length and all output lengths at one prompt length, or the full grid. The fixed
 * length is the default if the list has it, else the first of the list.
 */
function sequence({ batchSize, inputLen, outputLen, grid }: TypedSizes, alone: boolean): BenchPoint[] {
  const batchSizes = alone ? (batchSize ?? [1]) : [1];
  const allPrompts = inputLen ?? promptAxis.list;
  const allOutputs = outputLen ?? outputAxis.list;
  if (grid) return allPoints(['sequence'], batchSizes, allPrompts, allOutputs);
  const output = allOutputs.includes(promptAxis.output) ? promptAxis.output : allOutputs[0]!;
  const prompt = allPrompts.includes(outputAxis.prompt) ? outputAxis.prompt : allPrompts[0]!;
  return [
    ...allPoints(['sequence'], batchSizes, allPrompts, [output]),
    ...allPoints(['sequence'], batchSizes, [prompt], allOutputs),
  ];
}

function allPoints(
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
