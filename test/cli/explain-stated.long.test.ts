import Database from 'libsql';
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { explainDocumentSchema, verifyDocumentSchema } from '../../src/model/documents/explain.js';
import { utilizationDocumentSchema } from '../../src/model/documents/utilization.js';
import { captures, fixture } from './capture-files.js';
import { expectFailure, inferscope, createSetup, listSessions } from './run-cli.js';

const setup = createSetup();
beforeAll(() => {
  const result = inferscope(setup, ['import', captures.sqlite, '--quiet', '--name', 'b1']);
  expect(result.status, result.stderr).toBe(0);
});

const explain = (...args: string[]) => inferscope(setup, ['explain', ...args]);

test('the model and sizes given for a session are saved and used by later commands, until --clear removes them', () => {
  const config = join(setup.scratch, 'config.json');
  writeFileSync(
    config,
    JSON.stringify({
      model_type: 'llama',
      hidden_size: 512,
      intermediate_size: 1408,
      num_hidden_layers: 4,
      num_attention_heads: 8,
      num_key_value_heads: 2,
      vocab_size: 4096,
    }),
  );
  const decode = (...args: string[]) => {
    const result = explain('b1', ...args, '--json');
    expect(result.status, result.stderr).toBe(0);
    const { data } = explainDocumentSchema.parse(JSON.parse(result.stdout));
    return { ...data.stages.find(({ kind }) => kind === 'decode')!, given: data.workload?.given_by_user };
  };
  expect(decode().roofline_ms.value).toBeNull();
  const stated = decode('--model', config, '--dtype', 'float16', '--batch-size', '1', '--input-len', '64');
  expect(stated.roofline_ms.value).toBeGreaterThan(0);
  expect(stated.given).toEqual(['model', 'dtype', 'batch_size', 'input_len']);
  // Later commands use the saved values without the flags.
  expect(decode().roofline_ms).toEqual(stated.roofline_ms);
  const utilization = inferscope(setup, ['session', 'utilization', 'b1', '--json']);
  expect(utilization.status, utilization.stderr).toBe(0);
  expect(utilizationDocumentSchema.parse(JSON.parse(utilization.stdout)).data.model).toMatchObject({
    dtype: 'float16',
    from: 'given by you',
  });
  // Eight sequences read the weights once, so a step takes more than the same time but less than eight times as long.
  expect(inferscope(setup, ['session', 'set', 'b1', '--batch-size', '8']).status).toBe(0);
  const eight = decode();
  expect(eight.new_tokens).toBe(8);
  expect(eight.roofline_ms.value).toBeGreaterThan(stated.roofline_ms.value!);
  expectFailure(inferscope(setup, ['session', 'set', 'b1', '--json']), 2, 'E_USAGE');
  expectFailure(explain('b1', '--model', 'no-such-model', '--json'), 5, 'E_MODEL_NOT_FOUND');
  expect(inferscope(setup, ['session', 'set', 'b1', '--clear']).status).toBe(0);
  expect(decode().roofline_ms.value).toBeNull();
});

test('the class given to an unknown kernel is used by later commands, until --clear removes it', () => {
  const kernel = 'mystery_kernel';
  const path = join(setup.scratch, 'mystery.sqlite');
  copyFileSync(captures.sqlite, path);
  const file = new Database(path);
  file.exec(`UPDATE StringIds SET value = '${kernel}' WHERE value LIKE 'nvjet_sm90_hsh_8x64_64x16%'`);
  file.close();
  expect(inferscope(setup, ['import', path, '--quiet', '--name', 'mystery']).status).toBe(0);
  const set = (...args: string[]) => inferscope(setup, ['session', 'set', 'mystery', ...args]);
  const classesOf = (short: string): unknown => {
    const query = `SELECT DISTINCT class FROM kernels WHERE short_name = '${short}'`;
    const result = inferscope(setup, ['sql', 'mystery', query, '--json']);
    expect(result.status, result.stderr).toBe(0);
    return (JSON.parse(result.stdout) as { data: { rows: unknown } }).data.rows;
  };
  expect(classesOf(kernel)).toEqual([['other']]);
  expect(set('--kernel-class', `${kernel}=norm`).stdout).toContain(`${kernel} is norm`);
  expect(classesOf(kernel)).toEqual([['norm']]);
  // A known class stays.
  expect(set('--kernel-class', 'vectorized_elementwise_kernel=norm').status).toBe(0);
  expect(classesOf('vectorized_elementwise_kernel')).not.toContainEqual(['norm']);
  expectFailure(set('--kernel-class', `${kernel}=magic`, '--json'), 2, 'E_USAGE');
  expect(set('--clear').status).toBe(0);
  expect(classesOf(kernel)).toEqual([['other']]);
});

describe('an archive instead of a session', () => {
  const archiveOf = (variant: 'fault' | 'fixed') => fixture(`diagnosis/launch_bound_decode-${variant}.tgz`);
  const countSessions = () => listSessions(setup).length;
  const explainJson = (...args: string[]) => {
    const result = explain(...args, '--json');
    expect(result.status, result.stderr).toBe(0);
    return JSON.parse(result.stdout) as { data: { findings: { id: string }[] } };
  };

  test('an exported session is saved once and explained', () => {
    const before = countSessions();
    expect(explainJson(archiveOf('fault')).data.findings[0]!.id).toBe('launch_bound:decode');
    expect(explainJson(archiveOf('fault')).data.findings[0]!.id).toBe('launch_bound:decode');
    expect(countSessions()).toBe(before + 1);
  });

  test('--verify accepts an archive: the decode step went from 5.88 ms to 1.62 ms', () => {
    const result = explain(archiveOf('fault'), '--verify', archiveOf('fixed'), '--json');
    expect(result.status, result.stderr).toBe(0);
    const { data } = verifyDocumentSchema.parse(JSON.parse(result.stdout));
    expect(data.stages.find(({ kind }) => kind === 'decode')!.achieved_ms).toBeCloseTo(4.26, 2);
  });
});
