// Compares predictions with measured times on a GPU. See README.md.
// node bench/predict/run.mjs [--models 1.1b,8b] [--batch-size 1,8,32] [--input-len 128,2048] [--output-len 16]
//   [--python python3] [--cli dist/cli.js] [--no-roofline] [--keep]
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const here = dirname(fileURLToPath(import.meta.url));
const { values } = parseArgs({
  options: {
    models: { type: 'string', default: '1.1b,8b' },
    'batch-size': { type: 'string', default: '1,8,32' },
    'input-len': { type: 'string', default: '128,2048' },
    'output-len': { type: 'string', default: '16' },
    python: { type: 'string', default: process.env.INFERSCOPE_PYTHON ?? 'python3' },
    cli: { type: 'string', default: join(here, '..', '..', 'dist', 'cli.js') },
    'no-roofline': { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
  },
});
const output = Number(values['output-len']);
const contexts = values['input-len'].split(',').map(Number);
const goals = { median: 0.1, worst: 0.25 };

/** Dimensions of TinyLlama-1.1B and Llama-3.1-8B, with positions for the longest context and its output. */
const shapes = {
  '1.1b': {
    hidden_size: 2048,
    intermediate_size: 5632,
    num_hidden_layers: 22,
    num_attention_heads: 32,
    num_key_value_heads: 4,
    vocab_size: 32000,
  },
  '8b': {
    hidden_size: 4096,
    intermediate_size: 14336,
    num_hidden_layers: 32,
    num_attention_heads: 32,
    num_key_value_heads: 8,
    vocab_size: 128256,
  },
};
const base = {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  torch_dtype: 'bfloat16',
  hidden_act: 'silu',
  rms_norm_eps: 1e-5,
  rope_theta: 10000,
  tie_word_embeddings: false,
  max_position_embeddings: Math.max(4096, ...contexts.map((context) => context + output)),
};

const scratch = mkdtempSync(join(tmpdir(), 'inferscope-bench-predict-'));
const env = { ...process.env, INFERSCOPE_HOME: join(scratch, 'home'), INFERSCOPE_PYTHON: values.python };
const started = Date.now();
const seconds = () => `${((Date.now() - started) / 1000).toFixed(0)} s`;

function inferscope(args, limitS) {
  console.error(`[${seconds()}] inferscope ${args.join(' ')}`);
  const { status, stdout, stderr, error } = spawnSync(process.execPath, [resolve(values.cli), ...args], {
    encoding: 'utf8',
    env,
    cwd: scratch,
    timeout: limitS * 1000,
    killSignal: 'SIGINT',
    maxBuffer: 1 << 28,
  });
  if (status !== 0) throw new Error(`${error ? `${error.message}\n` : ''}${stderr.slice(-2000)}`);
  return stdout;
}

function writeConfig(name, dims) {
  mkdirSync(join(scratch, name));
  const path = join(scratch, name, 'config.json');
  writeFileSync(path, JSON.stringify({ ...base, ...dims }));
  return path;
}

const batches = values['batch-size'];
/** Measures the kernels of a model into a session. @returns its name */
function measureKernels(session, config, contextLens) {
  inferscope(
    [
      'kernels',
      '--from-model',
      config,
      '--batch-size',
      batches,
      '--context-len',
      contextLens.join(','),
      '--dtype',
      'bfloat16',
    ].concat([
      '--runs',
      '20',
      '--max-seconds',
      '0.3',
      '--no-check',
      '--python',
      values.python,
      '--name',
      session,
      '--quiet',
    ]),
    120,
  );
  return session;
}

/**
 * Measures the kernels that transformers runs for a model, and returns the names of their sessions. `inferscope kernels` fuses Q, K and V, and
 * gate and up; transformers runs each as a separate GEMM, and in CUDA graphs attention over a static cache without shared KV heads. Two
 * one-layer models have these shapes: as their fused gate and up, and as their heads.
 */
function measureKernelTables(id, dims) {
  const {
    hidden_size: hidden,
    num_attention_heads: heads,
    num_key_value_heads: kv,
    intermediate_size: inner,
  } = dims;
  const small = { ...dims, num_hidden_layers: 1, num_key_value_heads: heads, vocab_size: 64 };
  const reserved = contexts.map((context) => context + output - 1);
  return [
    measureKernels(`${id}-full`, writeConfig(`${id}-full`, dims), contexts),
    measureKernels(
      `${id}-gate`,
      writeConfig(`${id}-gate`, { ...small, intermediate_size: inner / 2 }),
      reserved,
    ),
    measureKernels(
      `${id}-kv`,
      writeConfig(`${id}-kv`, { ...small, intermediate_size: ((hidden / heads) * kv) / 2 }),
      [16],
    ),
  ];
}

function measure(id, context) {
  const session = `${id}-bench-${context}`;
  const model = join(scratch, `${id}-full`, 'config.json');
  inferscope(
    [
      'bench',
      'throughput',
      '--engine',
      'transformers',
      '--model',
      model,
      '--weights',
      'random',
      '--dtype',
      'bfloat16',
      '--engine-arg',
      'mode=cudagraph',
      '--python',
      values.python,
      '--batch-size',
      batches,
      '--input-len',
      String(context),
      '--output-len',
      String(output),
      '--runs',
      '3',
      '--launches',
      '1',
      '--name',
      session,
      '--quiet',
    ],
    240,
  );
  return session;
}

const ms = ({ value }) => (value === null ? '-' : value.toFixed(value < 10 ? 3 : 1)).padStart(9);
const ratio = ({ value }) => (value === null ? '-' : value.toFixed(2)).padStart(6);
const percent = (share) => (share === null ? '-' : `${(100 * share).toFixed(1)} %`);
const decodeErrors = [];
const allErrors = [];
let stagesAbove = 0;

function printStages(id, { stages, error, device }) {
  console.log(`\n${id}, ${device.name}, ${device.roofs} roofs, ms`);
  console.log('stage    batch context  roofline  measured  by table  ratio beyond  residual');
  for (const stage of stages) {
    for (const measurement of stage.measured) {
      const parts = measurement.residual.toSorted((a, b) => Math.abs(b.ms) - Math.abs(a.ms)).slice(0, 2);
      console.log(
        `${stage.phase.padEnd(8)} ${String(stage.batch_size).padStart(5)} ${String(stage.input_len).padStart(7)} ${ms(stage.roofline_ms)} ${ms(measurement.ms)} ${ms(stage.predicted_ms)} ${ratio(measurement.table_ratio)} ${percent(stage.beyond_table_share).padStart(6)}  ${parts.map((part) => `${part.cause} ${part.ms.toFixed(3)}`).join(', ')}`,
      );
      if (measurement.above_measurement) stagesAbove++;
      if (measurement.table_ratio.value === null) continue;
      allErrors.push(Math.abs(measurement.table_ratio.value - 1));
      if (stage.phase === 'decode') decodeErrors.push(Math.abs(measurement.table_ratio.value - 1));
    }
  }
  if (error)
    console.log(
      `error: median ${percent(error.median)}, worst ${percent(error.worst)}; decode ${percent(error.decode_median)}, ${percent(error.decode_worst)}`,
    );
}

function median(list) {
  const sorted = list.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

try {
  if (!values['no-roofline'])
    inferscope(['roofline', '--device', 'cuda', '--python', values.python, '--quiet'], 180);
  for (const id of values.models.split(',')) {
    const dims = shapes[id];
    if (!dims) throw new Error(`no shape ${id}: ${Object.keys(shapes).join(', ')}`);
    const names = measureKernelTables(id, dims);
    for (const context of contexts) {
      const session = measure(id, context);
      const document = JSON.parse(
        inferscope(
          [
            'predict',
            ...names.flatMap((name) => ['--kernels', name]),
            '--session',
            session,
            '--json',
            '--quiet',
          ],
          60,
        ),
      );
      if (values.keep)
        writeFileSync(join(scratch, `${id}-${context}-predict.json`), JSON.stringify(document, null, 2));
      printStages(id, document.data);
    }
  }
  const [middle, worst] = [median(decodeErrors), Math.max(...decodeErrors)];
  const met = middle <= goals.median && worst <= goals.worst && stagesAbove === 0;
  console.log(
    `\ndecode as CUDA graphs, ${decodeErrors.length} stages: median ${percent(middle)} (goal ${percent(goals.median)}), worst ${percent(worst)} (goal ${percent(goals.worst)})`,
  );
  console.log(
    `all ${allErrors.length} stages: median ${percent(median(allErrors))}, worst ${percent(Math.max(...allErrors))}`,
  );
  console.log(`roofline above the measurement: ${stagesAbove} stages (goal 0); ${seconds()} in all`);
  process.exitCode = met ? 0 : 1;
} catch (error) {
  console.error(String(error.message ?? error));
  process.exitCode = 3;
} finally {
  if (values.keep) console.error(`results are in ${scratch}`);
  else rmSync(scratch, { recursive: true, force: true });
}
