import { z } from 'zod';
import { aiProviders } from '../ask/model-settings.js';
import { readYaml } from './yaml-file.js';
import { configError } from './config-error.js';

const count = z.number().int().positive();
const sizes = z.union([count, z.array(count)]);
/** "30s", "500ms". */
const time = z.string();

const benchKeys = {
  engine: z.string().optional(),
  model: z.string().optional(),
  weights: z.enum(['random', 'trained']).optional(),
  dtype: z.string().optional(),
  device: z.string().optional(),
  threads: count.optional(),
  engine_arg: z.array(z.string()).optional(),
  url: z.string().optional(),
  python: z.string().optional(),
  runs: count.optional(),
  launches: count.optional(),
  seed: z.number().int().nonnegative().optional(),
  output: z.string().optional(),
};
/** Commands that do not sweep the size take one number. */
const benchSection = (list: { batch: boolean; lengths: boolean }) =>
  z
    .strictObject({
      ...benchKeys,
      batch_size: (list.batch ? sizes : count).optional(),
      input_len: (list.lengths ? sizes : count).optional(),
      output_len: (list.lengths ? sizes : count).optional(),
    })
    .optional();

/** inferscope.yaml. Every key is optional; unknown keys are rejected with the nearest known one. */
const configSchema = z.strictObject({
  home: z.string().optional(),
  profile: z
    .strictObject({
      model: z.string().optional(),
      dtype: z.string().optional(),
      batch_size: count.optional(),
      input_len: count.optional(),
      output_len: count.optional(),
      threads: count.optional(),
      launches: count.optional(),
      runs: count.optional(),
      repeats: count.optional(),
    })
    .optional(),
  bench: z
    .strictObject({
      latency: benchSection({ batch: false, lengths: false }),
      throughput: benchSection({ batch: true, lengths: false }),
      sequence: benchSection({ batch: false, lengths: true }),
      suite: benchSection({ batch: true, lengths: true }),
      serve: z
        .strictObject({
          model: z.string().optional(),
          api: z.enum(['completions', 'chat']).optional(),
          tokenizer: z.string().optional(),
          input_len: count.optional(),
          output_len: count.optional(),
          slo: z.string().optional(),
          timeout: time.optional(),
          threads: count.optional(),
          metrics_url: z.string().optional(),
        })
        .optional(),
    })
    .optional(),
  monitor: z
    .strictObject({
      hz: z.number().optional(),
      idle_below: z.number().optional(),
      idle_for: time.optional(),
      record: z.boolean().optional(),
      require_gpu: z.boolean().optional(),
    })
    .optional(),
  /**
   * The model that analyze, session compare --ai, run and import ask (docs/guides/ask-questions.md). Keys are in the
   * environment.
   */
  ai: z
    .strictObject({
      provider: z.enum(aiProviders).optional(),
      base_url: z.string().optional(),
      model: z.string().optional(),
      api_key_env: z.string().optional(),
      timeout: time.optional(),
      max_steps: count.optional(),
      input_usd_per_million: z.number().nonnegative().optional(),
      output_usd_per_million: z.number().nonnegative().optional(),
    })
    .optional(),
  roofline: z
    .strictObject({ device: z.string().optional(), python: z.string().optional(), threads: count.optional() })
    .optional(),
  kernels: z
    .strictObject({
      engine: z.enum(['torch', 'onnx']).optional(),
      device: z.string().optional(),
      python: z.string().optional(),
      threads: count.optional(),
      runs: count.optional(),
      output: z.string().optional(),
    })
    .optional(),
  memory: z
    .strictObject({
      engine: z.string().optional(),
      weights: z.string().optional(),
      dtype: z.string().optional(),
      device: z.string().optional(),
      python: z.string().optional(),
      timeout: time.optional(),
    })
    .optional(),
  /** Range names that mark stages (src/import/stage-name-config.ts checks them). */
  stages: z.array(z.unknown()).optional(),
});

type Config = z.infer<typeof configSchema>;

/** @throws E_CONFIG_FILE naming line and column */
export function readConfigFile(path: string, text: string): Config {
  return readYaml(text, configSchema, ([{ where, text: what, fix }]) => configError(path, where, what, fix))
    .value;
}
