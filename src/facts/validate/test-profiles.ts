import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Validation } from '../../model/documents/validate.js';
import { type ProfileFields, profileFieldsSchema } from './profile-fields.js';
import { toleranceOf, validateProfiles } from './validate.js';

/** Profiles recorded on an H200. */
export const folder = join('test', 'fixtures', 'memory-profiles-h200');
export const readProfile = (name: string): ProfileFields =>
  profileFieldsSchema.parse(JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8')));

/** Shapes from 0.5 B to 14 B, MHA, GQA and MoE, in three dtypes. */
export const names = [
  'qwen2.5-0.5b-float16',
  'qwen2-1.5b-float32',
  'llama-2-7b-float16',
  'llama-3.1-8b-bfloat16',
  'qwen1.5-moe-a2.7b-bfloat16',
  'qwen2.5-14b-bfloat16',
];
export const validateOne = (profile: ProfileFields, tolerance = 0.05): Omit<Validation, 'session'> =>
  validateProfiles([{ source: 'x.json', profile }], toleranceOf(tolerance));
