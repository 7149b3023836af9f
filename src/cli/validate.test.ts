import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { profileFieldsSchema } from '../facts/validate/profile-fields.js';
import { folder, validateOne, readProfile } from '../facts/validate/test-profiles.js';
import { validateCsv } from '../export/validate-csv.js';
import { document } from '../model/document.js';
import {
  validationDocumentSchema,
  validationHistoryDocumentSchema,
  type Validation,
} from '../model/documents/validate.js';
import { InferscopeError } from '../model/errors.js';
import { pageOfView } from '../render/html/view.js';
import { terminalView } from '../render/terminal/view.js';
import { testFolder } from '../session/test-folder.js';
import { validateHistoryView } from '../views/validate-history.js';
import { validateView } from '../views/validate.js';
import { validate, validationHistory, writeValidationFiles } from './validate-run.js';

/** With details, without line breaks. */
const textOf = (data: Omit<Validation, 'session'>): string =>
  terminalView(validateView(document('validate', '1.1', { session: null, ...data })), {
    width: 80,
    level: 2,
  }).replaceAll(/\s+/g, ' ');
it("counts profiles of a shared GPU if the profile's own share is known, with a note", () => {
  const path = join('test', 'fixtures', 'memory-another-process-h200', 'before.json');
  const flagged = profileFieldsSchema.parse(JSON.parse(readFileSync(path, 'utf8')));
  flagged.memory_breakdown.total_measured_basis = 'own_processes';
  const found = validateOne(flagged);
  expect(found.profiles[0]).toMatchObject({ status: 'compared', total: { within_tolerance: true } });
  expect(found.counts).toMatchObject({ compared: 1, rejected: 0 });
  const sentence = 'x.json: Others used the GPU; the total covers only its own processes';
  expect(textOf(found)).toContain(`note ${sentence}`);
  expect(validateCsv(found)).toContain('Others used the GPU');
  // The count of the whole GPU includes other processes, so it cannot be compared.
  flagged.memory_breakdown.total_measured_basis = 'points';
  expect(validateOne(flagged).profiles[0]).toMatchObject({ status: 'rejected', total: null });
});

it('compares only measured components: formulas of a CPU profile are listed as not measured', () => {
  const profile = readProfile('llama-2-7b-float16');
  const cache = profile.memory_breakdown.components!.find(({ component }) => component === 'kv_cache')!;
  cache.basis = 'formula';
  const [row] = validateOne(profile).profiles;
  expect(row!.not_measured).toEqual(['kv_cache']);
  expect(row!.components.map(({ component }) => component)).not.toContain('kv_cache');
  expect(textOf(validateOne(profile))).toContain('not measured KV cache in 1');
  const [head, first] = validateCsv(validateOne(profile)).split('\n');
  expect(first!.split(',')).toContain('kv_cache');
  expect(head!.split(',')).toContain('not_measured');
});

describe('inferscope validate', () => {
  let home: string;
  beforeEach(() => {
    home = testFolder();
    vi.stubEnv('INFERSCOPE_HOME', home);
  });
  afterEach(() => vi.unstubAllEnvs());

  it('a folder gives a session, a summary, a CSV and a page; the trend covers all sessions', async () => {
    const made = await validate([folder], { tolerance: 0.05 });
    expect(validationDocumentSchema.parse(made)).toEqual(made);
    expect(made.data.counts).toMatchObject({ compared: 17, rejected: 1 });
    const files = await writeValidationFiles(made, new Date('2026-11-21T12:00:00Z'), join(home, 'reports'));
    expect(files.summary).toBe(join(home, 'reports', 'batch-summary-20261121-120000.txt'));
    const summary = readFileSync(files.summary, 'utf8');
    expect(summary).toContain('17 of 17 totals within 5 %');
    expect(summary).toContain('rejected');
    expect(summary).toContain('Recommendations');
    const [head, ...rows] = readFileSync(files.csv, 'utf8').trim().split('\n');
    expect(rows).toHaveLength(18);
    expect(head!.split(',')).toContain('kv_cache_error_bytes');
    const page = pageOfView(validateView(made), { clientScript: '' });
    expect(page).toContain('Errors by component');
    expect(page).not.toMatch(/https?:\/\/(?!www\.w3\.org)/);

    const strict = await validate([join(folder, 'qwen2-1.5b-float32.json')], { tolerance: 0.000_01 });
    expect(strict.data.result).toBe('failed');
    const history = await validationHistory();
    expect(validationHistoryDocumentSchema.parse(history)).toEqual(history);
    expect(history.data.sessions.map(({ result }) => result)).toEqual(['passed', 'failed']);
    for (const view of [validateView(made), validateHistoryView(history)]) {
      const text = terminalView(view, { width: 80 });
      expect(text.split('\n').length).toBeLessThanOrEqual(30);
      for (const line of stripVTControlCharacters(text).split('\n')) {
        expect([...line].length, line).toBeLessThanOrEqual(80);
      }
    }
  });

  it('a profile without configuration asks for it, and is compared after it is given', async () => {
    const {
      schema_version,
      memory_measurements,
      memory_breakdown: parts,
    } = readProfile('llama-2-7b-float16');
    const { total_measured_gb, model_weights_gb, kv_cache_gb, activations_gb } = parts;
    const file = join(home, 'bare.json');
    const bare = {
      schema_version,
      model_info: { name: 'ours' },
      memory_measurements: { peak: memory_measurements.peak },
      memory_breakdown: { total_measured_gb, model_weights_gb, kv_cache_gb, activations_gb },
    };
    writeFileSync(file, JSON.stringify(bare));
    const without = await validate([file], { tolerance: 0.05 });
    expect(without.data.result).toBe('nothing_compared');
    expect(without.data.profiles[0]).toMatchObject({ batch_size: null, input_len: null, output_len: null });
    const [why] = without.data.profiles[0]!.reasons;
    for (const flag of ['--engine', '--model', '--batch-size', '--input-len', '--output-len'])
      expect(why).toContain(flag);
    const sizes = { batchSize: 4, inputLen: 512, outputLen: 48, dtype: 'float16' };
    const configuration = { tolerance: 0.05, engine: 'transformers', model: 'llama-2-7b', ...sizes };
    const made = await validate([file], configuration);
    expect(made.data.counts).toMatchObject({ compared: 1, within_tolerance: 1 });
    // 2 × 32 layers × 4096 × 2 bytes × 512 tokens × 4 sequences: the peak is in prefill.
    const kv = made.data.profiles[0]!.components.find(({ component }) => component === 'kv_cache')!;
    expect(kv.estimated_bytes).toBe(2 * 32 * 4096 * 2 * 512 * 4);
    const llama = join(folder, 'llama-2-7b-float16.json');
    await expect(validate([llama], { tolerance: 0.05, batchSize: 8 })).rejects.toMatchObject({
      code: 'E_USAGE',
      parts: { what: expect.stringContaining('--batch-size') as string },
    });
  });

  it('rejects sources without a profile', async () => {
    const codeOf = async (run: Promise<unknown>): Promise<string> => {
      const error: unknown = await run.catch((thrown: unknown) => thrown);
      return error instanceof InferscopeError ? error.code : 'none';
    };
    const empty = join(home, 'empty');
    mkdirSync(empty);
    expect(await codeOf(validate([empty], { tolerance: 0.05 }))).toBe('E_USAGE');
    const file = join(empty, 'x.json');
    writeFileSync(file, '{"schema_version": "1.0"}');
    expect(await codeOf(validate([file], { tolerance: 0.05 }))).toBe('E_FORMAT_UNKNOWN');
    expect(await codeOf(validate([join(empty, 'none.json')], { tolerance: 0.05 }))).toBe('E_USAGE');
    expect(await codeOf(validate(['no-such-session'], { tolerance: 0.05 }))).toBe('E_SESSION_NOT_FOUND');
    expect(await codeOf(validationHistory())).toBe('E_USAGE');
  });

  it('shows errors above the tolerance and their reasons', () => {
    const profile = structuredClone(readProfile('llama-3.1-8b-bfloat16'));
    const parts = profile.memory_breakdown;
    parts.components!.find(({ component }) => component === 'activations')!.bytes += 4e9;
    parts.total_measured_bytes! += 4e9;
    const found = validateOne(profile);
    expect(found.result).toBe('failed');
    const text = textOf(found);
    expect(text).toContain(
      'Largest difference in activations: 1.947 GB estimated, 5.947 GB measured (−67 %)',
    );
    // One profile is not enough to change a constant.
    expect(text).toContain('Recommendations None: no constant');
  });
});
