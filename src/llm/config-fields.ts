import { InferscopeError } from '../model/errors.js';

/** Larger values are a damaged file: no published model is within a factor of 1000 of either. */
const largestSize = 2 ** 31;

/** @returns the error for a field of config.json that is missing or impossible, naming the field and its value. */
export function configError(field: string, value: unknown, why: string): InferscopeError {
  const what =
    value === undefined || value === null
      ? `config.json has no usable "${field}"`
      : `config.json field "${field}" is impossible: ${JSON.stringify(value)}`;
  return new InferscopeError('E_MODEL_CONFIG', {
    what,
    why,
    fix: `Set "${field}" to the model's real value; the config.json published with the model has it.`,
  });
}

export interface IntegerRule {
  /** Smallest value allowed; 1 when left out. */
  min?: number;
  max?: number;
  /** Used when the field is absent or null; without it the field is required. */
  fallback?: number | undefined;
}

/** Reads one config.json object; `names` are alternatives, the first one present counts. */
export interface ConfigFields {
  /** @throws E_MODEL_CONFIG naming the field when missing, not an integer, or out of range */
  integer(names: readonly string[], rule?: IntegerRule): number;
  /** A positive integer, or null when the config says null or nothing. */
  integerOrNull(name: string, rule?: Omit<IntegerRule, 'fallback'>): number | null;
  boolean(name: string, fallback: boolean): boolean;
  /** A number in (0, 1]. */
  fraction(name: string, fallback: number): number;
  raw(name: string): unknown;
}

export function configFields(config: Record<string, unknown>): ConfigFields {
  const check = (name: string, value: unknown, { min = 1, max = largestSize }: IntegerRule): number => {
    if (typeof value !== 'number' || !Number.isInteger(value)) {
      throw configError(name, value, 'It must be an integer.');
    }
    if (value < min || value > max) {
      throw configError(name, value, `It must lie between ${min} and ${max}.`);
    }
    return value;
  };
  return {
    integer(names, rule = {}) {
      const name = names.find((n) => config[n] !== undefined && config[n] !== null);
      if (name !== undefined) return check(name, config[name], rule);
      if (rule.fallback !== undefined) return rule.fallback;
      throw configError(names[0] ?? '?', undefined, 'The arithmetic of this model needs it.');
    },
    integerOrNull(name, rule = {}) {
      const value = config[name];
      return value === undefined || value === null ? null : check(name, value, rule);
    },
    boolean(name, fallback) {
      const value = config[name];
      if (value === undefined || value === null) return fallback;
      if (typeof value !== 'boolean') throw configError(name, value, 'It must be true or false.');
      return value;
    },
    fraction(name, fallback) {
      const value = config[name];
      if (value === undefined || value === null) return fallback;
      if (typeof value !== 'number' || !(value > 0 && value <= 1)) {
        throw configError(name, value, 'It must be a number above 0 and at most 1.');
      }
      return value;
    },
    raw: (name) => config[name],
  };
}
