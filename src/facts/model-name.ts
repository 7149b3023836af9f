import type { Workload } from '../model/manifest.js';

/** Name of the model; of a server's, the one that it reports. Null if unknown. */
export function modelNameOf({ model, engine }: Workload): string | null {
  if (typeof model?.name === 'string') return model.name;
  const served = engine.options['model'];
  return typeof served === 'string' ? served : null;
}
