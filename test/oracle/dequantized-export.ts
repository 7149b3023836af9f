import { readFileSync, writeFileSync } from 'node:fs';
import { onnx } from 'onnx-proto';

/**
 * Rewrites a dynamically quantized export (DynamicQuantizeLinear + MatMulInteger + Cast + Mul) into the float32 model
 * it approximates: each such chain becomes MatMul(x, (q − zero point) · scale). A dynamic int8 model rounds all tokens
 * of a call with one common scale, so its logits depend on how tokens are split into calls; the float32 one's do not.
 */
export function dequantizeExport(from: string, to: string): void {
  const model = onnx.ModelProto.decode(readFileSync(from));
  const graph = model.graph;
  if (!graph?.node || !graph.initializer) throw new Error(`${from} has no graph`);
  const tensors = new Map(graph.initializer.map((tensor) => [tensor.name, tensor]));
  const producer = new Map(graph.node.flatMap((node) => (node.output ?? []).map((output) => [output, node])));

  const replaced = new Set<onnx.INodeProto>();
  const nodes = graph.node.flatMap((node): onnx.INodeProto[] => {
    const cast = node.opType === 'Mul' ? producer.get(node.input?.[0] ?? '') : undefined;
    const matMul = cast?.opType === 'Cast' ? producer.get(cast.input?.[0] ?? '') : undefined;
    if (matMul?.opType !== 'MatMulInteger') return [node];
    replaced.add(cast!).add(matMul);
    const [input, weight] = matMul.input as [string, string];
    const source = producer.get(input)!.input![0]!;
    const stem = weight.replace(/_quantized$/, '');
    const quantized = tensors.get(weight)!;
    const scale = readScalar(tensors.get(`${stem}_scale`)!);
    const zero = tensors.get(`${stem}_zero_point`)!;
    const zeroPoint = zero.rawData?.length
      ? Buffer.from(zero.rawData).readInt8(0)
      : (zero.int32Data?.[0] ?? 0);
    const bytes = new Int8Array(Buffer.from(quantized.rawData!));
    const values = Float32Array.from(bytes, (q) => (q - zeroPoint) * scale);
    graph.initializer!.push({
      name: stem,
      dims: quantized.dims!,
      dataType: 1,
      rawData: new Uint8Array(values.buffer),
    });
    return [{ opType: 'MatMul', name: node.name!, input: [source, stem], output: node.output! }];
  });
  graph.node = nodes.filter((node) => !replaced.has(node));
  const needed = new Set(graph.node.flatMap((node) => node.input ?? []));
  graph.initializer = graph.initializer.filter((tensor) => needed.has(tensor.name ?? ''));
  writeFileSync(to, onnx.ModelProto.encode(model).finish());
}

function readScalar(tensor: onnx.ITensorProto): number {
  return tensor.floatData?.[0] ?? Buffer.from(tensor.rawData!).readFloatLE(0);
}
