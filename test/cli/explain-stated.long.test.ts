import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { explainDocumentSchema, verifyDocumentSchema } from '../../src/model/documents/explain.js';
import { utilizationDocumentSchema } from '../../src/model/documents/utilization.js';
import { packageRoot } from '../../src/model/installation.js';
import { captures } from './capture-files.js';
import { expectFailure, inferscope, place } from './profile-cli.js';

const setup = place();
afterAll(() => rmSync(setup.scratch, { recursive: true, force: true }));
beforeAll(() => {
  const ran = inferscope(setup, ['import', captures.sqlite, '--quiet', '--name', 'b1']);
  expect(ran.status, ran.stderr).toBe(0);
});

const explain = (...words: string[]) => inferscope(setup, ['explain', ...words]);

test('context stated for a session is saved and used from then on; --clear removes it', () => {
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
  const decode = (...words: string[]) => {
    const ran = explain('b1', ...words, '--json');
    expect(ran.status, ran.stderr).toBe(0);
    const { data } = explainDocumentSchema.parse(JSON.parse(ran.stdout));
    return { ...data.stages.find(({ kind }) => kind === 'decode')!, given: data.workload?.given };
  };
  expect(decode().roofline_ms.value).toBeNull();
  const stated = decode('--model', config, '--dtype', 'float16', '--batch-size', '1', '--input-len', '64');
  expect(stated.roofline_ms.value).toBeGreaterThan(0);
  expect(stated.given).toEqual(['model', 'dtype', 'batch_size', 'input_len']);
  // Without the flag, and with figures of another command.
  expect(decode().roofline_ms).toEqual(stated.roofline_ms);
  const used = inferscope(setup, ['session', 'utilization', 'b1', '--json']);
  expect(used.status, used.stderr).toBe(0);
  expect(utilizationDocumentSchema.parse(JSON.parse(used.stdout)).data.model).toMatchObject({
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

describe('an archive instead of a session', () => {
  const inClone = (...path: string[]) => join(packageRoot(), ...path);
  const planted = (twin: string) =>
    inClone('test', 'fixtures', 'diagnosis', `launch_bound_decode-${twin}.tgz`);
  const sessions = () =>
    readdirSync(join(setup.home, 'sessions')).filter((name) => !name.startsWith('.')).length;
  const explained = (...words: string[]) => {
    const ran = explain(...words, '--json');
    expect(ran.status, ran.stderr).toBe(0);
    return JSON.parse(ran.stdout) as { data: { findings: { id: string }[] } };
  };

  test('the export of a session is saved once and explained', () => {
    const before = sessions();
    expect(explained(planted('fault')).data.findings[0]!.id).toBe('launch_bound:decode');
    expect(explained(planted('fault')).data.findings[0]!.id).toBe('launch_bound:decode');
    expect(sessions()).toBe(before + 1);
  });

  test('--verify accepts an archive too: 5.88 ms became 1.62 ms', () => {
    const ran = explain(planted('fault'), '--verify', planted('fixed'), '--json');
    expect(ran.status, ran.stderr).toBe(0);
    const { data } = verifyDocumentSchema.parse(JSON.parse(ran.stdout));
    expect(data.stages.find(({ kind }) => kind === 'decode')!.achieved_ms).toBeCloseTo(4.26, 2);
  });
});
