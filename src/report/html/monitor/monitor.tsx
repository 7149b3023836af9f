import type { Document } from '../../../model/document.js';
import type { MonitorResult } from '../../../model/documents/monitor.js';
import { documentPage } from '../document-page.js';
import { deviceSections } from './devices.js';
import { hostSection } from './host.js';
import { recordingSection } from './recording.js';
import { MonitorSummary } from './summary.js';

/**
 * The HTML report of a recording of GPUs and host: one page without any remote asset.
 * @param clientScript text of dist/report-client.js, which draws the charts
 */
export function monitorReport(
  document: Document<MonitorResult>,
  { clientScript }: { clientScript: string },
): string {
  const { session } = document.data;
  return documentPage({
    title: session.title,
    document,
    session: { ...session, id: session.id ?? 'not kept' },
    summary: <MonitorSummary document={document} />,
    sections: [...deviceSections(document.data), hostSection, recordingSection],
    clientScript,
  });
}
