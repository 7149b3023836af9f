import { formatCount } from '../../vocabulary/format.js';
import { settingLabel } from '../../vocabulary/memory-components.js';
import type { ComparedProfile } from './read-profile.js';

/** The configuration of a profile as flat text fields: options, dtypes, engine and machine. */
export function configurationOf(profile: ComparedProfile): Map<string, string> {
  const values = new Map<string, string>();
  const add = (label: string, value: unknown) => {
    if (value === null || value === undefined || typeof value === 'object') return;
    values.set(label, String(value));
  };
  add('model', profile.model_info.name);
  const { num_parameters: parameters } = profile.model_info;
  add('parameters', typeof parameters === 'number' ? formatCount(parameters) : null);
  for (const [key, value] of Object.entries(profile.metadata?.config ?? {}))
    if (key !== 'model') add(settingLabel(key), value);
  for (const key of ['weights', 'activations', 'kv_cache'] as const)
    add(`dtype of ${settingLabel(key)}`, profile.model_info.dtypes?.[key]);
  const { engine_type, engine_version, engine_args } = profile.engine_metadata ?? {};
  add('engine', engine_type);
  add('engine version', engine_version);
  for (const [key, value] of Object.entries(engine_args ?? {}))
    add(`engine: ${key.replaceAll('_', ' ')}`, value);
  const { where, container_name: container } = profile.metadata ?? {};
  add('where', where);
  add('container', container);
  const gpus = profile.memory_measurements.peak.per_gpu_details ?? [];
  add('GPUs', gpus.length > 0 ? gpus.length : null);
  add('GPU', [...new Set(gpus.map(({ name }) => name).filter(Boolean))].join(', ') || null);
  return values;
}
