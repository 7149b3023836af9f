import { importers } from '../../src/import/index.js';
import { createSession } from '../../src/session/create.js';
import { homeFolders } from '../../src/session/home.js';
import { openSession, type Session } from '../../src/session/open.js';
import { summary } from '../../src/session/test-session.js';

/** Imports captures of one run as one session, in a home below `folder`. */
export async function importGpuSession(
  folder: string,
  captures: { importer: string; path: string }[],
): Promise<Session> {
  const home = homeFolders({ INFERSCOPE_HOME: `${folder}/home` });
  const writer = await createSession({ kind: 'import', label: 'gpu', home });
  const target = { sink: writer.sink, workbench: writer.workbench, scratch: folder };
  const zero = { realtime_ns: null, monotonic_ns: null };
  for (const [index, { importer: name, path }] of captures.entries()) {
    const importer = importers.find((candidate) => candidate.name === name);
    if (!importer) throw new Error(`no importer ${name}`);
    const context = { execution_id: 'profiled', capture_id: `c${index}`, host: 'h', zero };
    await importer.load(path, target, context);
  }
  const { id } = await writer.finish({
    ...summary,
    title: 'tiny Llama, NVIDIA H200',
    workload: null,
    executions: [{ ...summary.executions[0]!, execution_id: 'profiled', purpose: 'profiled' }],
    captures: captures.map(({ importer }, index) => ({
      ...summary.captures[0]!,
      capture_id: `c${index}`,
      execution_id: 'profiled',
      tool: { name: importer, version: null },
    })),
  });
  return openSession(id, home);
}
