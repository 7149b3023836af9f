import { fileURLToPath } from 'node:url';
import { importers } from '../../import/index.js';
import type { Workload } from '../../model/manifest.js';
import { createSession } from '../../session/create.js';
import type { Home } from '../../session/home.js';
import { openSession, type Session } from '../../session/open.js';
import { summary } from '../../session/test-session.js';

/** Our own captures (test/fixtures, ORIGIN.md there). */
export const fixture = (path: string): string =>
  fileURLToPath(new URL(`../../../test/fixtures/${path}`, import.meta.url));

/** Imports one file by the named importer, as `inferscope import` does, and opens the session. */
export async function imported(
  home: Home,
  importer: string,
  path: string,
  { workload = null, name }: { workload?: Workload | null; name?: string } = {},
): Promise<Session> {
  const one = importers.find((candidate) => candidate.name === importer);
  if (!one) throw new Error(`no importer ${importer}`);
  const writer = await createSession({ home, label: 'fixture', kind: 'import', ...(name ? { name } : {}) });
  const facts = await one.facts(path);
  const outcome = await one.load(
    path,
    { sink: writer.sink, workbench: writer.workbench, scratch: home.root },
    {
      execution_id: 'profiled',
      capture_id: importer,
      host: 'h',
      zero: { realtime_ns: facts.realtime_zero_ns, monotonic_ns: null },
    },
  );
  const { id } = await writer.finish(
    {
      ...summary,
      title: name ?? 'fixture',
      workload,
      hardware: facts.hardware,
      software: facts.software,
      executions: [
        {
          execution_id: 'profiled',
          purpose: 'profiled',
          command: [],
          exit_code: 0,
          start_ns: null,
          end_ns: null,
        },
      ],
      captures: [
        {
          capture_id: importer,
          execution_id: 'profiled',
          tool: facts.tool,
          importer,
          clock: outcome.clock,
        },
      ],
    },
    outcome.issues,
  );
  return openSession(id, home);
}
