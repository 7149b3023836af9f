import { z } from 'zod';
import {
  memoryProfileSchema,
  profileConfidences,
  unwrapProfile,
} from '../../model/documents/memory-profile.js';
import { InferscopeError } from '../../model/errors.js';
import { impossibleSize } from '../../model/memory-sizes.js';
import { parseJson } from '../../model/parse-json.js';
import { profileFieldsSchema } from '../../facts/validate/profile-fields.js';

const fields = profileFieldsSchema.shape;
const number = z.number().nullish();
const text = z.string().nullish();

/** Fields of a schema 2.0 profile that a comparison reads; files of other tools may lack all except the model's name and the peak. */
const comparedProfileSchema = profileFieldsSchema.extend({
  metadata: fields.metadata.unwrap().unwrap().extend({ timestamp: text }).nullish(),
  model_info: fields.model_info.extend({
    dtypes: z.looseObject({ weights: text, activations: text, kv_cache: text }).nullish(),
  }),
  memory_measurements: fields.memory_measurements.extend({
    memory_increase_gb: number,
    warmup_increase_gb: number,
    growth_gb: number,
  }),
  memory_breakdown: fields.memory_breakdown
    .extend({
      residual_gb: number,
      components: z
        .array(
          z.looseObject({
            component: z.string(),
            bytes: z.number(),
            confidence: z.enum(profileConfidences).nullish(),
          }),
        )
        .nullish(),
      confidence_levels: z.record(z.string(), z.string()).nullish(),
    })
    .nullish(),
  latency_stats: z
    .looseObject({
      mean_latency_ms: number,
      tokens_per_second: number,
      mean_ttft_ms: number,
      mean_tpot_ms: number,
    })
    .nullish(),
});

export type ComparedProfile = z.infer<typeof comparedProfileSchema>;

export interface ReadProfile {
  profile: ComparedProfile;
  /** Missing fields of schema 2.0, only the outermost. */
  absent: string[];
}

/**
 * Reads the text of a profile.
 * @param fill gets the profile from the file's JSON, and may add missing facts
 * @throws E_RECORD_FILE with the wrong field
 */
export function readComparedProfile(
  content: string,
  path: string,
  fill: (json: unknown) => unknown = unwrapProfile,
): ReadProfile {
  let raw: unknown;
  try {
    raw = fill(parseJson(content));
  } catch (error) {
    throw unreadable(path, `it is not JSON: ${(error as Error).message}`);
  }
  return checkComparedProfile(raw, path);
}

/** @throws E_RECORD_FILE with the wrong field */
export function checkComparedProfile(raw: unknown, path: string): ReadProfile {
  const version = (raw as { schema_version?: unknown } | null)?.schema_version;
  if (version === undefined) throw unreadable(path, 'it has no schema_version');
  if (typeof version !== 'string' || !/^2(\.|$)/.test(version))
    throw unreadable(path, `its schema_version is ${JSON.stringify(version)}, not 2.0`);
  const checked = comparedProfileSchema.safeParse(raw);
  if (!checked.success) {
    const [issue] = checked.error.issues;
    const value = issue!.path.reduce<unknown>(
      (value, key) => (value as Record<PropertyKey, unknown> | undefined)?.[key],
      raw,
    );
    const where = issue!.path.join('.');
    throw unreadable(
      path,
      value === undefined
        ? `${where} is missing`
        : `${where} is ${JSON.stringify(value)?.slice(0, 60)}: ${issue!.message}`,
    );
  }
  const impossible = impossibleSize(checked.data);
  if (impossible !== null) throw unreadable(path, impossible);
  return { profile: checked.data, absent: absentOf(raw) };
}

function unreadable(path: string, why: string): InferscopeError {
  return new InferscopeError('E_RECORD_FILE', {
    what: `${path} cannot be compared: ${why}`,
    why: 'A memory profile (schema 2.0) has at least schema_version, model_info.name and memory_measurements.peak.',
    fix: 'Make one with inferscope memory, or give a session of it; --model and the other flags give a file what it does not state. The schema: inferscope schema memory-profile',
  });
}

/** By the published schema, without fields inside of missing ones. */
function absentOf(raw: unknown): string[] {
  const checked = memoryProfileSchema.safeParse(raw);
  if (checked.success) return [];
  const missing = checked.error.issues
    .filter(({ path }) => valueAt(raw, path) === undefined)
    .map(({ path }) => path.join('.'));
  return [...new Set(missing)];
}

const valueAt = (raw: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>(
    (value, key) =>
      typeof value === 'object' && value !== null ? (value as Record<PropertyKey, unknown>)[key] : undefined,
    raw,
  );
