import { document, type Document, type Issue } from '../../model/document.js';
import { memoryProfileSchema, unwrapProfile } from '../../model/documents/memory-profile.js';
import type { MemoryResult } from '../../model/documents/memory-result.js';
import { hasSubject } from '../../model/subjects.js';
import type { Session } from '../../session/open.js';
import type { SessionFilter } from '../../session/select.js';
import { readArtifactJson } from '../artifact.js';
import { withAliases } from './aliases.js';
import { sessionOfKind } from '../session-identity.js';

/** Sessions of `memory`, and sessions with an imported profile. */
export const memoryProfiles: SessionFilter = {
  name: 'memory profiles',
  matches: (manifest) => hasSubject(manifest, 'memory'),
};

/**
 * A memory profile read by `import`: the whole result is in the file, without samples. Null if the session has none.
 */
export async function readImportedMemory(session: Session): Promise<Document<MemoryResult> | null> {
  const file = await readArtifactJson(session, 'memory-profile', 'the memory profile that was imported');
  if (file === null) return null;
  const profile = memoryProfileSchema.parse(unwrapProfile(file));
  Object.assign(profile, withAliases(profile));
  const { baseline, post_warmup, peak } = profile.memory_measurements;
  const points = { baseline, post_warmup, peak };
  const issues: Issue[] = profile.metadata.issues.map((issue) => ({ ...issue, severity: 'warning' }));
  return document(
    'memory',
    '1.0',
    {
      session: sessionOfKind(session),
      profile,
      timeline: {
        series: [],
        marks: (['baseline', 'post_warmup', 'peak'] as const).flatMap((point) => {
          const { t_s, total_bytes: bytes } = points[point];
          return t_s === null || bytes === null ? [] : [{ point, t_s, bytes }];
        }),
        phases: [],
      },
      allocator: [],
      fragmentation: [],
      allocations: null,
    },
    [...session.issues, ...issues],
  );
}
