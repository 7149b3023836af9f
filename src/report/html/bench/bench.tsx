import type { Document } from '../../../model/document.js';
import type { BenchResult } from '../../../model/documents/bench.js';
import { thinned } from '../../../model/thinned.js';
import { documentPage, type Explanation } from '../document-page.js';
import { answersSection } from './answers.js';
import { batchSection } from './batch.js';
import type { BenchSection } from './bench-parts.js';
import { benchDefinitionsSection, protocolSection } from './definitions.js';
import { efficiencySection } from './efficiency.js';
import { machineSection } from './machine.js';
import { pointsSection } from './points.js';
import { sequenceSection } from './sequence.js';
import { spreadSection } from './spread.js';
import { BenchSummary } from './summary.js';
import { benchTelemetrySection } from './telemetry.js';
import { variantsSection } from './variants.js';

/** In the order of reading: what someone in a hurry needs is first. */
const sections: BenchSection[] = [
  answersSection,
  pointsSection,
  batchSection,
  sequenceSection,
  variantsSection,
  spreadSection,
  machineSection,
  efficiencySection,
  benchTelemetrySection,
  protocolSection,
  benchDefinitionsSection,
];

const mostTelemetryPoints = 12_000;

/** The document as a page carries it: of eight GPUs it would be megabytes of samples. The session keeps all. */
function forPage(document: Document<BenchResult>): Document<BenchResult> {
  const { telemetry } = document.data;
  if (!telemetry) return document;
  const each = Math.max(50, Math.floor(mostTelemetryPoints / Math.max(1, telemetry.length)));
  const series = telemetry.map((one) => ({ ...one, points: thinned(one.points, each) }));
  return { ...document, data: { ...document.data, telemetry: series } };
}

/**
 * The HTML report of a benchmark: one page without any remote asset.
 * @param clientScript text of dist/report-client.js, which draws the charts
 */
export function benchReport(
  whole: Document<BenchResult>,
  { clientScript, explanation }: { clientScript: string; explanation?: Explanation | undefined },
): string {
  const document = forPage(whole);
  const { session } = document.data;
  return documentPage({
    title: session.title,
    document,
    session,
    summary: <BenchSummary document={document} sentences={explanation?.sentences} />,
    ...(explanation && { lead: explanation.sections }),
    sections,
    clientScript,
  });
}
