import { fileURLToPath } from 'node:url';
import { importers } from '../../import/index.js';
import type { Workload } from '../../model/manifest.js';
import { createSession, type SessionSummary } from '../../session/create.js';
import type { Home } from '../../session/home.js';
import { openSession, type Session } from '../../session/open.js';
import { summary } from '../../session/test-session.js';

export const fixture = (path: string): string =>
  fileURLToPath(new URL(`../../../test/fixtures/${path}`, import.meta.url));

/** Imports one file with the named importer, like `inferscope import`, and opens the session. */
export const imported = (
  home: Home,
  importer: string,
  path: string,
  options: { workload?: Workload | null; name?: string } = {},
): Promise<Session> => importedTogether(home, [[importer, path]], options);

/** Imports (importer, path) pairs of several executions into one session. */
export async function importedTogether(
  home: Home,
  files: readonly (readonly [importer: string, path: string])[],
  { workload = null, name }: { workload?: Workload | null; name?: string } = {},
): Promise<Session> {
  const writer = await createSession({ home, label: 'fixture', kind: 'import', ...(name ? { name } : {}) });
  const loaded = [];
  for (const [index, [importer, path]] of files.entries()) {
    const importerModule = importers.find((candidate) => candidate.name === importer);
    if (!importerModule) throw new Error(`no importer ${importer}`);
    const facts = await importerModule.facts(path, writer.workbench);
    const capture = { execution_id: index === 0 ? 'profiled' : `profiled-${index}`, capture_id: importer };
    const outcome = await importerModule.load(
      path,
      { sink: writer.sink, workbench: writer.workbench, scratch: home.root },
      { ...capture, host: 'h', zero: { realtime_ns: facts.realtime_zero_ns, monotonic_ns: null } },
    );
    loaded.push({ facts, outcome, capture, importer });
  }
  const { id } = await writer.finish(
    {
      ...summary,
      title: name ?? 'fixture',
      workload,
      hardware: Object.assign({}, ...loaded.map(({ facts }) => facts.hardware)) as SessionSummary['hardware'],
      software: Object.assign({}, ...loaded.map(({ facts }) => facts.software)) as SessionSummary['software'],
      executions: loaded.map(({ facts, capture: { execution_id } }) => ({
        execution_id,
        purpose: facts.purpose === 'clean' || facts.purpose === 'counters' ? facts.purpose : 'profiled',
        command: [],
        exit_code: 0,
        start_ns: null,
        end_ns: null,
      })),
      captures: loaded.map(({ facts, outcome, capture, importer }) => ({
        ...capture,
        tool: facts.tool,
        importer,
        clock: outcome.clock,
      })),
    },
    loaded.flatMap(({ outcome }) => outcome.issues),
  );
  return openSession(id, home);
}
