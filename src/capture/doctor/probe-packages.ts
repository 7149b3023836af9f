import { packageVersion } from '../../hardware/environment.js';
import { packageRoot } from '../../model/installation.js';
import type { PackageCheck } from './facts.js';
import { failureLine, runTool } from './run-tool.js';

/**
 * Native packages are tried in their own process: one built for another libc or CPU kills the process that loads it with a
 * signal, which doctor must report. For this reason nothing is imported here.
 */

/** y = x · x as an ONNX file (ir_version 8, opset 13, one Mul node): 80 bytes. */
export const squareModel =
  'CAgSCmluZmVyc2NvcGU6OgoOCgF4CgF4EgF5IgNNdWwSBnNxdWFyZVoPCgF4EgoKCAgBEgQKAggBYg8KAXkSCgoICAESBAoCCAFCBAoAEA0=';

const engineScript = `
const loaded = await import('onnxruntime-node');
const ort = loaded.InferenceSession ? loaded : loaded.default;
const session = await ort.InferenceSession.create(Buffer.from('${squareModel}', 'base64'));
const { y } = await session.run({ x: new ort.Tensor('float32', [3], [1]) });
if (y.data[0] !== 9) throw new Error('3 · 3 gave ' + y.data[0]);
process.stdout.write('ran a model');
`;

const duckdbScript = `
const { DuckDBInstance } = await import('@duckdb/node-api');
const connection = await (await DuckDBInstance.create(':memory:')).connect();
const reader = await connection.runAndReadAll("select 6 * 7, (select count(*)::int from duckdb_extensions() where loaded and extension_name in ('parquet', 'json'))");
const [answer, extensions] = reader.getRows()[0];
if (answer !== 42 || extensions !== 2) throw new Error('6 · 7 gave ' + answer + ', Parquet and JSON: ' + extensions + ' of 2');
process.stdout.write('ran a query');
`;

export async function checkEngine(timeoutMs: number): Promise<PackageCheck> {
  return checkPackage('onnxruntime-node', engineScript, timeoutMs);
}

export async function checkDuckdb(timeoutMs: number): Promise<PackageCheck> {
  return checkPackage('@duckdb/node-api', duckdbScript, timeoutMs);
}

/** Runs `script` in its own Node process, in the folder from which the package resolves. */
export async function checkPackage(name: string, script: string, timeoutMs: number): Promise<PackageCheck> {
  const version = packageVersion(name);
  if (version === null) return { version, works: false, detail: 'not installed' };
  const run = await runTool(process.execPath, ['--input-type=module', '--eval', script], {
    timeoutMs,
    cwd: packageRoot(),
  });
  return { version, works: run.ok, detail: run.ok ? run.stdout.trim() : failureLine(run) };
}
