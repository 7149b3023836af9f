import type { Document } from '../../../model/document.js';
import type { ExplainResult } from '../../../model/documents/explain.js';
import type { ServingResult } from '../../../model/documents/serving.js';
import { documentPage } from '../document-page.js';
import { explainParts } from '../explain/explain.js';
import { servingDefinitionsSection, servingSetupSection } from './definitions.js';
import { failuresSection, tokensSection } from './failures.js';
import { clientSection, serverSection } from './health.js';
import { servingLatencySection } from './latency.js';
import { loadsSection } from './loads.js';
import type { ServingSection } from './serving-parts.js';
import { ServingSummary } from './summary.js';
import { servingThroughputSection } from './throughput.js';

/** In the order of reading: what someone in a hurry needs is first. */
const sections: ServingSection[] = [
  loadsSection,
  servingLatencySection,
  servingThroughputSection,
  failuresSection,
  serverSection,
  tokensSection,
  clientSection,
  servingSetupSection,
  servingDefinitionsSection,
];

/**
 * The HTML report of a load test: one page without any remote asset.
 * @param clientScript text of dist/report-client.js, which draws the charts
 */
export function servingReport(
  document: Document<ServingResult>,
  { clientScript, explain }: { clientScript: string; explain?: Document<ExplainResult> | null },
): string {
  const { session } = document.data;
  return documentPage({
    title: session.title,
    document,
    session,
    summary: <ServingSummary document={document} explain={explain} />,
    lead: explainParts(explain),
    sections,
    clientScript,
  });
}
