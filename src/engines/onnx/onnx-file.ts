import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { bytesField, floatField, intField } from './protobuf.js';
import { plural, formatCount } from '../../vocabulary/format.js';

/**
 * Writes ONNX models: a small graph in `<name>` and every large tensor in `<name>.data` (ONNX "external data"), so that
 * neither protobuf's 2 GiB limit nor this process's memory limits the model. Field numbers are those of onnx.proto3
 * (github.com/onnx/onnx/blob/main/onnx/onnx.proto3).
 */

const dataTypes = { float32: 1, uint8: 2, int8: 3, int32: 6, int64: 7, bool: 9 } as const;
type TensorType = keyof typeof dataTypes;
const elementBytes: Record<TensorType, number> = {
  float32: 4,
  uint8: 1,
  int8: 1,
  int32: 4,
  int64: 8,
  bool: 1,
};

/** Attributes state their ONNX type, because 1 and 1.0 are different attributes. */
export type Attribute = { int: number } | { float: number } | { ints: number[] };

export interface OnnxNode {
  op: string;
  /** '' is the ONNX operator set; com.microsoft has the runtime's fused operators. */
  domain?: '' | 'com.microsoft';
  name: string;
  /** '' is an omitted optional input. */
  inputs: string[];
  outputs: string[];
  attributes?: Record<string, Attribute>;
}

/** A constant of the graph. `chunks` yields its little-endian bytes in order; buffers may be reused between chunks. */
export interface OnnxTensor {
  name: string;
  type: TensorType;
  shape: number[];
  chunks(): Iterable<Uint8Array>;
}

/** A graph input or output; a string dimension is symbolic. */
export interface OnnxValue {
  name: string;
  type: TensorType;
  shape: (number | string)[];
}

export interface OnnxGraph {
  name: string;
  nodes: OnnxNode[];
  tensors: OnnxTensor[];
  inputs: OnnxValue[];
  outputs: OnnxValue[];
  metadata: Record<string, string>;
}

interface WrittenFile {
  name: string;
  bytes: number;
  sha256: string;
}

export function tensorBytes(tensor: { type: TensorType; shape: number[] }): number {
  return tensor.shape.reduce((product, dimension) => product * dimension, elementBytes[tensor.type]);
}

/**
 * Smaller tensors stay in the graph file. Larger ones go to the data file, on a page boundary, so that the runtime can
 * map them.
 */
const inlineLimitBytes = 16 * 1024;
const alignmentBytes = 4096;

/**
 * Writes `folder/fileName` and `folder/fileName.data`, which is empty without a large tensor; both are flushed to the disk.
 * `onProgress(done, total)` counts bytes of tensors.
 */
export async function writeOnnx(
  folder: string,
  fileName: string,
  graph: OnnxGraph,
  onProgress?: (doneBytes: number, totalBytes: number) => void,
): Promise<WrittenFile[]> {
  const dataName = `${fileName}.data`;
  const totalBytes = graph.tensors.reduce((sum, tensor) => sum + tensorBytes(tensor), 0);
  const data = await openHashed(join(folder, dataName));
  const main = await openHashed(join(folder, fileName));
  try {
    const initializers: Uint8Array[] = [];
    let doneBytes = 0;
    for (const tensor of graph.tensors) {
      const bytes = tensorBytes(tensor);
      if (bytes <= inlineLimitBytes) {
        const inline = Buffer.concat([...tensor.chunks()].map((part) => Buffer.from(part)));
        initializers.push(tensorProto(tensor, { inline }));
      } else {
        await data.write(new Uint8Array((alignmentBytes - (data.bytes() % alignmentBytes)) % alignmentBytes));
        const offset = data.bytes();
        for (const part of tensor.chunks()) {
          await data.write(part);
          onProgress?.(doneBytes + data.bytes() - offset, totalBytes);
        }
        if (data.bytes() - offset !== bytes) {
          throw new Error(
            `tensor ${tensor.name} has ${plural(data.bytes() - offset, 'byte')}, its shape needs ${formatCount(bytes)}`,
          );
        }
        initializers.push(tensorProto(tensor, { location: dataName, offset, length: bytes }));
      }
      doneBytes += bytes;
      onProgress?.(doneBytes, totalBytes);
    }
    await main.write(modelProto(graph, initializers));
    return [await main.finish(), await data.finish()];
  } catch (error) {
    await Promise.all([main.abandon(), data.abandon()]);
    throw error;
  }
}

async function openHashed(path: string) {
  const handle = await open(path, 'w');
  const hash = createHash('sha256');
  let bytes = 0;
  return {
    bytes: () => bytes,
    async write(part: Uint8Array): Promise<void> {
      hash.update(part);
      let from = 0;
      // An almost full disk accepts part of a write and reports ENOSPC only at the next one.
      while (from < part.length) {
        const { bytesWritten } = await handle.write(part, from, part.length - from);
        from += bytesWritten;
      }
      bytes += part.length;
    },
    /** Flushes to the disk and closes. */
    async finish(): Promise<WrittenFile> {
      await handle.sync();
      await handle.close();
      return { name: basename(path), bytes, sha256: hash.digest('hex') };
    },
    /** Closes the file after a failure; errors of the close are ignored in favor of the failure. */
    abandon: (): Promise<void> => handle.close().catch(() => undefined),
  };
}

type Placement = { inline: Uint8Array } | { location: string; offset: number; length: number };

function tensorProto(tensor: OnnxTensor, placement: Placement): Uint8Array {
  const entry = (key: string, value: string) => bytesField(13, [bytesField(1, key), bytesField(2, value)]);
  return bytesField(5, [
    ...tensor.shape.map((dimension) => intField(1, dimension)),
    intField(2, dataTypes[tensor.type]),
    bytesField(8, tensor.name),
    ...('inline' in placement
      ? [bytesField(9, placement.inline)]
      : [
          entry('location', placement.location),
          entry('offset', String(placement.offset)),
          entry('length', String(placement.length)),
          intField(14, 1),
        ]),
  ]);
}

function nodeProto(node: OnnxNode): Uint8Array {
  return bytesField(1, [
    ...node.inputs.map((input) => bytesField(1, input)),
    ...node.outputs.map((output) => bytesField(2, output)),
    bytesField(3, node.name),
    bytesField(4, node.op),
    ...Object.entries(node.attributes ?? {}).map(([name, attribute]) => attributeProto(name, attribute)),
    ...(node.domain ? [bytesField(7, node.domain)] : []),
  ]);
}

function attributeProto(name: string, attribute: Attribute): Uint8Array {
  const value =
    'int' in attribute
      ? [intField(3, attribute.int), intField(20, 2)]
      : 'float' in attribute
        ? [floatField(2, attribute.float), intField(20, 1)]
        : [...attribute.ints.map((int) => intField(8, int)), intField(20, 7)];
  return bytesField(5, [bytesField(1, name), ...value]);
}

function valueProto(field: number, value: OnnxValue): Uint8Array {
  const shape = value.shape.map((dimension) =>
    bytesField(1, [typeof dimension === 'number' ? intField(1, dimension) : bytesField(2, dimension)]),
  );
  const tensorType = bytesField(1, [intField(1, dataTypes[value.type]), bytesField(2, shape)]);
  return bytesField(field, [bytesField(1, value.name), bytesField(2, [tensorType])]);
}

function modelProto(graph: OnnxGraph, initializers: Uint8Array[]): Uint8Array {
  const operatorSet = (domain: string, version: number) =>
    bytesField(8, [bytesField(1, domain), intField(2, version)]);
  return Buffer.concat([
    intField(1, 9),
    bytesField(2, 'inferscope'),
    bytesField(7, [
      ...graph.nodes.map(nodeProto),
      bytesField(2, graph.name),
      ...initializers,
      ...graph.inputs.map((input) => valueProto(11, input)),
      ...graph.outputs.map((output) => valueProto(12, output)),
    ]),
    operatorSet('', 18),
    operatorSet('com.microsoft', 1),
    ...Object.entries(graph.metadata).map(([key, value]) =>
      bytesField(14, [bytesField(1, key), bytesField(2, value)]),
    ),
  ]);
}
