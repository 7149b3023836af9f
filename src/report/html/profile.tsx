import type { Document } from '../../model/document.js';
import type { ProfileResult } from '../../model/documents/profile.js';
import { type Explanation, withoutWaterfall } from './document-page.js';
import { forPage } from '../thin.js';
import { modelWords } from '../words.js';
import { Page } from './page.js';
import type { Section } from './section.js';
import { definitionsSection } from './sections/definitions.js';
import { environmentSection } from './sections/environment.js';
import { latencySection } from './sections/latency.js';
import { layersSection } from './sections/layers.js';
import { memorySection } from './sections/memory.js';
import { operatorsSection } from './sections/operators.js';
import { rooflineSection } from './sections/roofline.js';
import { stagesSection } from './sections/stages.js';
import { Summary } from './sections/summary.js';
import { telemetrySection } from './sections/telemetry.js';
import { timelineSection } from './sections/timeline.js';
import { waterfallSection } from './sections/waterfall.js';

/** In the order of reading: what someone in a hurry needs is first. */
const sections: Section[] = [
  waterfallSection,
  stagesSection,
  operatorsSection,
  layersSection,
  rooflineSection,
  timelineSection,
  memorySection,
  latencySection,
  telemetrySection,
  environmentSection,
  definitionsSection,
];

/**
 * The HTML report of a profile: one page without any remote asset.
 * @param clientScript text of dist/report-client.js, which draws the charts
 */
export function profileReport(
  whole: Document<ProfileResult>,
  { clientScript, explanation }: { clientScript: string; explanation?: Explanation | undefined },
): string {
  const document = forPage(whole);
  const { data } = document;
  // The stages' own waterfall comes first: it knows what is clean and what was profiled.
  const [first, ...rest] = sections.map(({ id, title, render }) => ({ id, title, body: render(document) }));
  const parts = [...(first ? [first] : []), ...withoutWaterfall(explanation), ...rest];
  const page = (
    <Page
      title={`${modelWords(data.workload)} · inferscope`}
      contents={[{ id: 'summary', title: 'Summary' }, ...parts]}
      data={document}
      clientScript={clientScript}
    >
      <Summary document={document} sentences={explanation?.sentences} />
      {parts.map((section) => (
        <section id={section.id} aria-labelledby={`${section.id}-title`}>
          <h2 id={`${section.id}-title`}>
            <a href={`#${section.id}`}>{section.title}</a>
          </h2>
          {section.body}
        </section>
      ))}
      <footer>
        inferscope {document.tool_version} · session {data.session.id} · {data.session.started_at} · the page
        holds its data as {document.schema} JSON in <code>#profile-data</code>
      </footer>
    </Page>
  );
  return `<!DOCTYPE html>\n${String(page)}\n`;
}
