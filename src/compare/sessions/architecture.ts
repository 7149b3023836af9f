import { readArchitecture } from '../../llm/read-architecture.js';
import { InferscopeError } from '../../model/errors.js';
import type { ManifestData } from '../../model/manifest.js';

/** The architecture of the workload's model; null if it is not known. Copies of one model may have other names. */
export function architectureOf({ workload }: Pick<ManifestData, 'workload'>) {
  if (!workload?.model) return null;
  try {
    return readArchitecture(workload.model.config);
  } catch (error) {
    if (error instanceof InferscopeError) return null;
    throw error;
  }
}
