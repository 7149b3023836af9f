import { open, stat, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { InferscopeError, systemErrorCode } from '../../model/errors.js';
import { plural, formatCount } from '../../vocabulary/format.js';

/** Structure of an ONNX file, read without its weights. */
export interface OnnxSummary {
  inputs: string[];
  outputs: string[];
  /** Number of nodes by operator type, including subgraphs. */
  ops: Map<string, number>;
  /** Bytes of initializers by ONNX data type (1 float32, 2 uint8, 3 int8, 10 float16, 16 bfloat16 …). */
  bytesByType: Map<number, number>;
  /** `bits` of the MatMulNBits nodes; null without such nodes. */
  matMulBits: number | null;
}

/** Bits per element, by TensorProto.DataType; types not listed are not used for weights. */
const elementBits: Record<number, number> = {
  1: 32,
  2: 8,
  3: 8,
  4: 16,
  5: 16,
  6: 32,
  7: 64,
  9: 8,
  10: 16,
  11: 64,
  12: 32,
  13: 64,
  16: 16,
  17: 8,
  18: 8,
  19: 8,
  20: 8,
  21: 4,
  22: 4,
};

/**
 * Reads an ONNX model's structure (field numbers of onnx.proto3) without tensor bytes, and checks that all referenced
 * bytes exist, in the file and in its external data files.
 * @throws E_MODEL_FILE for a truncated file, a file that is not an ONNX model, or missing external data
 */
export async function inspectOnnx(path: string): Promise<OnnxSummary> {
  const summary: OnnxSummary = {
    inputs: [],
    outputs: [],
    ops: new Map(),
    bytesByType: new Map(),
    matMulBits: null,
  };
  const external = new Map<string, number>();
  const handle = await open(path);
  try {
    const { size } = await handle.stat();
    const reader = new WireReader(handle, size, path);
    let graphs = 0;
    for await (const field of reader.fields(0, size)) {
      if (field.number !== 7) continue;
      graphs++;
      await readGraph(reader, field, summary, external, true);
    }
    if (graphs === 0) throw notOnnx(path, size === 0 ? 'It is empty.' : 'It holds no graph.');
  } finally {
    await handle.close();
  }
  await checkExternal(path, external);
  return summary;
}

interface Field {
  number: number;
  wire: number;
  /** Varint or fixed value; 0 for length-delimited fields. */
  value: number;
  start: number;
  end: number;
}

/** Reads protobuf fields of a file through one read-ahead window, so that a skipped tensor costs one seek. */
class WireReader {
  private window = Buffer.alloc(0);
  private windowStart = 0;

  constructor(
    private readonly handle: FileHandle,
    private readonly size: number,
    readonly path: string,
  ) {}

  async bytes(from: number, to: number): Promise<Buffer> {
    if (from < this.windowStart || to > this.windowStart + this.window.length) {
      const length = Math.min(Math.max(to - from, 64 * 1024), this.size - from);
      const buffer = Buffer.alloc(length);
      const { bytesRead } = await this.handle.read(buffer, 0, length, from);
      this.window = buffer.subarray(0, bytesRead);
      this.windowStart = from;
    }
    return this.window.subarray(from - this.windowStart, to - this.windowStart);
  }

  async text(field: Field): Promise<string> {
    return (await this.bytes(field.start, field.end)).toString('utf8');
  }

  private async varint(offset: number): Promise<{ value: number; end: number }> {
    const bytes = await this.bytes(offset, Math.min(offset + 10, this.size));
    let value = 0;
    for (let i = 0; i < bytes.length; i++) {
      value += (bytes[i]! & 0x7f) * 2 ** (7 * i);
      if (bytes[i]! < 0x80) return { value, end: offset + i + 1 };
    }
    throw notOnnx(
      this.path,
      bytes.length < 10 ? `It is cut off at byte ${this.size}.` : 'It is not a protobuf file.',
    );
  }

  async *fields(from: number, to: number): AsyncGenerator<Field> {
    let offset = from;
    while (offset < to) {
      const tag = await this.varint(offset);
      const number = Math.floor(tag.value / 8);
      const wire = tag.value % 8;
      let value = 0;
      let start = tag.end;
      let end: number;
      if (wire === 0) ({ value, end } = await this.varint(start));
      else if (wire === 1) end = start + 8;
      else if (wire === 5) end = start + 4;
      else if (wire === 2) {
        const length = await this.varint(start);
        start = length.end;
        end = start + length.value;
      } else throw notOnnx(this.path, `Byte ${offset} is not a protobuf field.`);
      if (end > this.size) {
        throw notOnnx(
          this.path,
          `It is cut off: it has ${plural(this.size, 'byte')} and a field reaches to byte ${end}.`,
        );
      }
      if (number === 0 || end > to) throw notOnnx(this.path, `Byte ${offset} is not a protobuf field.`);
      yield { number, wire, value, start, end };
      offset = end;
    }
  }
}

async function readGraph(
  reader: WireReader,
  graph: Field,
  summary: OnnxSummary,
  external: Map<string, number>,
  outermost: boolean,
): Promise<void> {
  for await (const field of reader.fields(graph.start, graph.end)) {
    if (field.number === 1) await readNode(reader, field, summary, external);
    else if (field.number === 5) await readTensor(reader, field, summary, external);
    else if (outermost && (field.number === 11 || field.number === 12)) {
      for await (const part of reader.fields(field.start, field.end)) {
        if (part.number !== 1) continue;
        (field.number === 11 ? summary.inputs : summary.outputs).push(await reader.text(part));
        break;
      }
    }
  }
}

async function readNode(
  reader: WireReader,
  node: Field,
  summary: OnnxSummary,
  external: Map<string, number>,
): Promise<void> {
  let bits: number | null = null;
  let op = '';
  for await (const field of reader.fields(node.start, node.end)) {
    if (field.number === 4) op = await reader.text(field);
    if (field.number !== 5) continue;
    let name = '';
    for await (const part of reader.fields(field.start, field.end)) {
      if (part.number === 1) name = await reader.text(part);
      if (part.number === 3 && name === 'bits') bits = part.value;
      // Bodies of If and Loop are here; merged decoders have their weights in them.
      if (part.number === 6) await readGraph(reader, part, summary, external, false);
      if (part.number === 5) await readTensor(reader, part, summary, external);
    }
  }
  summary.ops.set(op, (summary.ops.get(op) ?? 0) + 1);
  if (op === 'MatMulNBits') summary.matMulBits = bits ?? 4;
}

async function readTensor(
  reader: WireReader,
  tensor: Field,
  summary: OnnxSummary,
  external: Map<string, number>,
): Promise<void> {
  let elements = 1;
  let type = 0;
  const entries = new Map<string, string>();
  for await (const field of reader.fields(tensor.start, tensor.end)) {
    if (field.number === 1 && field.wire === 0) elements *= field.value;
    else if (field.number === 1) for (const value of await packedVarints(reader, field)) elements *= value;
    else if (field.number === 2) type = field.value;
    else if (field.number === 13) {
      let key = '';
      for await (const part of reader.fields(field.start, field.end)) {
        if (part.number === 1) key = await reader.text(part);
        else entries.set(key, await reader.text(part));
      }
    }
  }
  const bytes = Math.ceil((elements * (elementBits[type] ?? 0)) / 8);
  summary.bytesByType.set(type, (summary.bytesByType.get(type) ?? 0) + bytes);
  const location = entries.get('location');
  if (location === undefined) return;
  const needed = Number(entries.get('offset') ?? 0) + Number(entries.get('length') ?? bytes);
  external.set(location, Math.max(external.get(location) ?? 0, needed));
}

async function packedVarints(reader: WireReader, field: Field): Promise<number[]> {
  const values: number[] = [];
  let value = 0;
  let shift = 0;
  for (const byte of await reader.bytes(field.start, field.end)) {
    value += (byte & 0x7f) * 2 ** shift;
    shift += 7;
    if (byte >= 0x80) continue;
    values.push(value);
    value = 0;
    shift = 0;
  }
  return values;
}

async function checkExternal(path: string, external: Map<string, number>): Promise<void> {
  for (const [location, needed] of external) {
    const file = join(dirname(path), location);
    const size = await stat(file).then(
      (entry) => entry.size,
      (error: unknown) => {
        if (systemErrorCode(error) === 'ENOENT') return null;
        throw error;
      },
    );
    if (size === null) throw notOnnx(path, `Its weights file ${location} is missing.`);
    if (size < needed) {
      throw notOnnx(
        path,
        `Its weights file ${location} is cut off: it has ${formatCount(size)} of ${plural(needed, 'byte')}.`,
      );
    }
  }
}

function notOnnx(path: string, why: string): InferscopeError {
  return new InferscopeError('E_MODEL_FILE', {
    what: `cannot use the model file ${path}`,
    why,
    fix: 'Download or export the model again; check that the file has its full size (git lfs pull, if it came from git).',
  });
}
