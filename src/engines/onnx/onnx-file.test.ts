import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onnx } from 'onnx-proto';
import { afterAll, expect, it } from 'vitest';
import { readOnnx, weightsOf } from '../../../test/oracle/onnx-weights.js';
import { writeOnnx, type OnnxGraph, type OnnxTensor } from './onnx-file.js';
import { inspectOnnx } from './onnx-inspect.js';
import { bytesField, floatField, intField } from './protobuf.js';
import { int4Block, randomInt4, randomLinear, randomMatrix } from './random-weights.js';

const folder = mkdtempSync(join(tmpdir(), 'inferscope-onnx-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function graphOf(tensors: OnnxTensor[]): OnnxGraph {
  return {
    name: 'test',
    nodes: [
      {
        op: 'MatMulNBits',
        domain: 'com.microsoft',
        name: '/a/MatMul',
        inputs: ['x', ...tensors.map((tensor) => tensor.name)],
        outputs: ['', 'y'],
        attributes: {
          K: { int: 64 },
          axis: { int: -1 },
          epsilon: { float: 1e-5 },
          perm: { ints: [0, -3, 2 ** 40] },
        },
      },
    ],
    tensors,
    inputs: [{ name: 'x', type: 'float32', shape: ['batch_size', 64] }],
    outputs: [{ name: 'y', type: 'float32', shape: ['batch_size', 2] }],
    metadata: { made_by: 'test' },
  };
}

it("writes files that the ONNX project's reader reads back", async () => {
  const large = randomMatrix('large', 1, 100, 64, 1);
  const small = randomMatrix('small', 1, 2, 3, 1);
  const files = await writeOnnx(folder, 'a.onnx', graphOf([large, small]));
  const { model, tensors } = readOnnx(join(folder, 'a.onnx'));

  const node = model.graph!.node![0]!;
  expect(node).toMatchObject({
    opType: 'MatMulNBits',
    domain: 'com.microsoft',
    name: '/a/MatMul',
    output: ['', 'y'],
  });
  const attributes = Object.fromEntries(node.attribute!.map((attribute) => [attribute.name, attribute]));
  expect(Number(attributes['K']!.i)).toBe(64);
  expect(Number(attributes['axis']!.i)).toBe(-1);
  expect(attributes['epsilon']!.f).toBe(Math.fround(1e-5));
  expect(attributes['perm']!.ints!.map(Number)).toEqual([0, -3, 2 ** 40]);
  const [x] = model.graph!.input!;
  expect(x!.type!.tensorType!.shape!.dim!.map((dim) => dim.dimParam || Number(dim.dimValue))).toEqual([
    'batch_size',
    64,
  ]);
  expect(model.opsetImport!.map((set) => set.domain)).toEqual(['', 'com.microsoft']);

  expect(tensors.get('small')!.bytes.length).toBe(24);
  const external = model.graph!.initializer![0]!.externalData!.map(({ key, value }) => [key, value]);
  expect(external).toEqual([
    ['location', 'a.onnx.data'],
    ['offset', '0'],
    ['length', '25600'],
  ]);
  expect(Buffer.compare(tensors.get('large')!.bytes, Buffer.concat([...large.chunks()]))).toBe(0);
  for (const file of files) expect(statSync(join(folder, file.name)).size).toBe(file.bytes);
});

it('puts large tensors on page boundaries', async () => {
  await writeOnnx(
    folder,
    'b.onnx',
    graphOf([randomMatrix('p', 1, 99, 63, 1), randomMatrix('q', 1, 99, 63, 1)]),
  );
  const offsets = readOnnx(join(folder, 'b.onnx')).model.graph!.initializer!.map((tensor) =>
    Number(tensor.externalData!.find(({ key }) => key === 'offset')!.value),
  );
  expect(offsets).toEqual([0, 28_672]);
});

it("inspects a file without reading weights, with the same result as the ONNX project's reader", async () => {
  const { quantized, scales } = randomInt4('w', 'w', 1, 64, 1024, 1);
  await writeOnnx(folder, 'c.onnx', graphOf([quantized, scales]));
  const summary = await inspectOnnx(join(folder, 'c.onnx'));
  expect(summary.inputs).toEqual(['x']);
  expect(summary.outputs).toEqual(['y']);
  expect(summary.ops).toEqual(new Map([['MatMulNBits', 1]]));
  expect(summary.bytesByType).toEqual(
    new Map([
      [2, (64 * 1024) / 2],
      [1, ((64 * 1024) / 32) * 4],
    ]),
  );
  // No `bits` attribute: the operator's default.
  expect(summary.matMulBits).toBe(4);
});

it('quantizes the float32 weights to within half a step', async () => {
  const [outputs, inputs] = [6, 80];
  const { quantized, scales } = randomInt4('w.weight', 'w.weight', 5, outputs, inputs, inputs ** -0.5);
  await writeOnnx(folder, 'd.onnx', graphOf([randomLinear('f.weight', 5, inputs, outputs)]));
  await writeOnnx(folder, 'e.onnx', graphOf([quantized, scales]));
  const stored = weightsOf(readOnnx(join(folder, 'e.onnx')).tensors).matrix('w.weight');
  // The stream is keyed by name, so the float32 twin is drawn under the quantized one's name.
  await writeOnnx(folder, 'f.onnx', graphOf([randomLinear('w.weight', 5, inputs, outputs)]));
  const exact = weightsOf(readOnnx(join(folder, 'f.onnx')).tensors).matrix('w.weight');
  exact.forEach((row, r) => {
    expect(stored[r]).toHaveLength(Math.ceil(inputs / int4Block) * int4Block);
    for (let from = 0; from < inputs; from += int4Block) {
      const block = row.slice(from, from + int4Block);
      const step = Math.max(...block.map(Math.abs)) / 7;
      block.forEach((weight, i) =>
        expect(Math.abs(stored[r]![from + i]! - weight)).toBeLessThanOrEqual(step * 0.5001),
      );
    }
  });
});

it('draws uniform weights with the requested standard deviation', () => {
  const values = [...randomMatrix('w', 9, 1000, 1000, 0.05).chunks()].flatMap((part) => [
    ...new Float32Array(part.slice().buffer),
  ]);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
  // Standard errors at n = 10^6: mean 5e-5, std 2e-5 (uniform).
  expect(Math.abs(mean)).toBeLessThan(2.5e-4);
  expect(Math.abs(Math.sqrt(variance) - 0.05)).toBeLessThan(1e-4);
  // Neighbors are independent: lag-1 correlation of 10^6 draws has a standard error of 0.001.
  let lag = 0;
  for (let i = 1; i < values.length; i++) lag += values[i]! * values[i - 1]!;
  expect(Math.abs(lag / values.length / variance)).toBeLessThan(0.005);
});

it("encodes protobuf like the specification's examples", () => {
  // protobuf.dev/programming-guides/encoding: field 1 = 150; field 2 = "testing"; negative numbers take ten bytes.
  expect([...intField(1, 150)]).toEqual([0x08, 0x96, 0x01]);
  expect([...bytesField(2, 'testing')]).toEqual([0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67]);
  expect([...intField(1, -2)]).toEqual([0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
  expect([...floatField(1, 1)]).toEqual([0x0d, 0, 0, 0x80, 0x3f]);
  expect(onnx.AttributeProto.decode(intField(3, -5)).i!.toString()).toBe('-5');
});
