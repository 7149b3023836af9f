import { expect, test } from 'vitest';
import { modelEntrySchema, sweepConfigSchema } from '../capture/sweep/config.js';
import { sweepTemplate } from '../capture/sweep/template.js';
import { InferscopeError } from '../model/errors.js';
import { readYaml, type YamlFault } from './yaml-file.js';

/** Every fault as `:line:column what → fix`. */
function faults(text: string): string[] {
  let found: YamlFault[] = [];
  try {
    readYaml(text, sweepConfigSchema, (all) => {
      found = all;
      return new InferscopeError('E_CONFIG_FILE', { what: '', why: '', fix: '' });
    });
  } catch (error) {
    if (!(error instanceof InferscopeError)) throw error;
  }
  return found.map(({ where, text: what, fix }) => `${where} ${what} → ${fix}`);
}

test('the template of --init is a valid file that names every key', () => {
  const { value } = readYaml(sweepTemplate, sweepConfigSchema, ([{ text }]) => {
    throw new Error(text);
  });
  expect(value.models).toEqual([
    {
      model_id: 'Qwen/Qwen2.5-0.5B-Instruct',
      input_lengths: [512, 1024],
      output_lengths: [128],
      batch_sizes: [1, 8, 16],
    },
  ]);
  for (const key of [...Object.keys(modelEntrySchema.shape), ...Object.keys(sweepConfigSchema.shape)])
    expect(sweepTemplate).toContain(`${key}:`);
});

test('every error has line, column and fix, in file order', () => {
  const file = `models:
  - model_id: x
    input_lengths: [512, "a", 1.5]
    output_lenghts: 3
    batch_sizes: "1 8"
    gpu_memory_utilization: 1.5
`;
  const known = Object.keys(modelEntrySchema.shape).join(', ');
  expect(faults(file)).toEqual([
    ':3:26 models[0].input_lengths[1]: expected a whole number above 0, found the text "a" → Write 8 there, or remove it.',
    ':3:31 models[0].input_lengths[2]: expected a whole number above 0, found 1.5 → Write 8 there, or remove it.',
    `:4:5 unknown key "models[0].output_lenghts" → Did you mean "output_lengths"? Known keys: ${known}.`,
    ':5:5 models[0].batch_sizes: expected a whole number above 0, or a list of them, found the text "1 8" → Write batch_sizes: [8, 16], or remove it.',
    ':6:5 models[0].gpu_memory_utilization: expected a number above 0 up to 1, found 1.5 → Write gpu_memory_utilization: 0.9, or remove it.',
  ]);
});

test.each([
  ['models: 3\n', ':1:1 models: expected a list: a mapping (key: value) each, found 3 → '],
  ['models: []\n', ':1:1 models: expected at least one entry, found a list ([]) → '],
  ['\n- a\n', ':2:1 the file: expected a mapping (key: value), found a list (["a"]) → Write it as keys'],
  [
    'mode: contaner\n',
    ':1:1 mode: expected one of host, container, url, found the text "contaner" → Write mode: container,',
  ],
  ['retries: -1\n', ':1:1 retries: expected a whole number from 0, found -1 → '],
  ['models: [{model_id: 3}]\n', ':1:11 models[0].model_id: expected a text, found 3 → '],
  ['grid: {a: [1, {}]}\n', ':1:15 grid.a[1]: expected '],
  ['models: &m [*m]\n', ' An alias refers to a value that contains the alias itself'],
  ['models: *m\n', ' Unresolved alias'],
  [
    `a0: &a0 [x, x]\n${Array.from({ length: 20 }, (_, i) => `a${i + 1}: &a${i + 1} [*a${i}, *a${i}]\n`).join('')}`,
    ' Excessive alias count',
  ],
  ['a: [1\n', ':2:1 Flow sequence in block collection must be sufficiently indented'],
])('%j', (text, first) => {
  expect(faults(text).join('\n')).toContain(first);
});
