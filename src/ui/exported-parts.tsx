import { gzipSync } from 'node:zlib';
import type { Child } from 'hono/jsx';
import { raw } from 'hono/html';
import { predictStages, measuredStages } from '../advice/what-if/what-if.js';
import { readMemoryOverTime } from '../facts/memory-profile/over-time.js';
import type { AnalyzedSession } from '../facts/session-document.js';
import { readExecutionsWithRequests, readRequests } from '../facts/serving/requests-over-time.js';
import type { Document } from '../model/document.js';
import type { ExplainResult } from '../model/documents/explain.js';
import { sectionOfView } from '../render/html/view.js';
import type { Session } from '../session/open.js';
import type { SessionDatabase } from '../session/query.js';
import type { Section, View } from '../views/block.js';
import type { Places } from '../views/findings.js';
import { memorySections } from './memory-page.js';
import { requestSections } from './requests-page.js';
import { loadLabels } from './session-requests.js';
import { offeredFor, WhatIfSwitches } from './what-if-switches.js';

/** Encodes data as base64 of gzip, which the script of the file decodes. */
export const packBase64 = (bytes: Uint8Array | string): string =>
  gzipSync(bytes, { level: 9 }).toString('base64');

/**
 * What-if switches of an exported file, with the waterfalls under each single change. Combinations need the server: the file would have to
 * hold every one.
 * @param chosen changes that the file shows first
 */
export async function exportedWhatIf(
  session: Session,
  view: View,
  explain: Document<ExplainResult>,
  places: Places | null,
  chosen: readonly string[],
): Promise<Child> {
  const offered = offeredFor(session, explain.data);
  if (offered.length === 0) return null;
  const measured = await measuredStages(session, { withRules: true });
  const switches = (change: string): Child => (
    <WhatIfSwitches
      chosen={change === '' ? [] : change.split(',')}
      offered={offered}
      linkTo={(changes) => `#what-if=${encodeURIComponent(changes.join(','))}`}
      alone
    />
  );
  const parts: Record<string, string> = {};
  const first = chosen.join(',');
  for (const change of new Set(['', ...offered, first])) {
    const whatIf = change === '' ? undefined : predictStages(session, measured, change.split(',')).data;
    const waterfall = sectionOfView(view, 'waterfall', {
      explain,
      ...(places ? { places } : {}),
      ...(whatIf ? { whatIf } : {}),
    });
    if (waterfall === null) return null;
    parts[change] = `${String(switches(change))}${waterfall}`;
  }
  return (
    <>
      {switches('')}
      <script type="application/octet-stream" id="what-ifs" data-chosen={first}>
        {raw(packBase64(JSON.stringify(parts)))}
      </script>
    </>
  );
}

/** Sections of the requests of every load and of memory over time; empty if the session has neither. */
export async function exportedRecords(
  database: SessionDatabase,
  { id, manifest }: Session,
  analyzed: AnalyzedSession,
): Promise<Section[]> {
  const sections: Section[] = [];
  const names = loadLabels(analyzed);
  const nameOf = (execution: string): string => names.get(execution) ?? execution;
  const executions = await readExecutionsWithRequests(database);
  for (const [index, execution] of executions.entries()) {
    const requestParts = requestSections(await readRequests(database, execution), {
      execution,
      executions: [execution],
      linkTo: null,
      nameOf,
      pages: executions.length,
      others: `inferscope ui ${id}`,
    });
    sections.push(
      ...requestParts.map((section) =>
        executions.length === 1
          ? section
          : { ...section, id: `${section.id}-${index + 1}`, title: `${section.title}: ${nameOf(execution)}` },
      ),
    );
  }
  const memory = await readMemoryOverTime(database);
  return [...sections, ...(memory.length > 0 ? memorySections(memory, manifest, names) : [])];
}
