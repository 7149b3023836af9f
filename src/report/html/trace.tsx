import { Page } from './page.js';
import { copiesSection, overlapSection } from './trace/copies.js';
import { lossesSection, traceDefinitionsSection, traceEnvironmentSection } from './trace/environment.js';
import { idleSection, launchesSection } from './trace/idle.js';
import type { TraceReportInputs, TraceSection } from './trace/inputs.js';
import { kernelsSection, traceClassesSection } from './trace/kernels.js';
import { traceOperatorsSection } from './trace/operators.js';
import { phasesSection } from './trace/phases.js';
import { TraceSummary } from './trace/summary.js';
import { gpuTelemetrySection } from './trace/telemetry.js';
import { gpuTimelineSection } from './trace/timeline.js';

/** In the order of reading: what someone in a hurry needs is first. */
const sections: TraceSection[] = [
  phasesSection,
  gpuTimelineSection,
  idleSection,
  kernelsSection,
  traceClassesSection,
  launchesSection,
  copiesSection,
  overlapSection,
  traceOperatorsSection,
  gpuTelemetrySection,
  lossesSection,
  traceEnvironmentSection,
  traceDefinitionsSection,
];

/**
 * The HTML report of a GPU session: one page without any remote asset.
 * @param clientScript text of dist/report-client.js, which draws the charts
 */
export function renderTraceReport(
  inputs: TraceReportInputs,
  { clientScript }: { clientScript: string },
): string {
  const { trace } = inputs;
  const shown = sections.filter(({ applies }) => applies?.(inputs) ?? true);
  const page = (
    <Page
      title={`${trace.data.session.title} · inferscope`}
      contents={[{ id: 'summary', title: 'Summary' }, ...shown]}
      data={trace}
      clientScript={clientScript}
    >
      <TraceSummary inputs={inputs} />
      {shown.map((section) => (
        <section id={section.id} aria-labelledby={`${section.id}-title`}>
          <h2 id={`${section.id}-title`}>
            <a href={`#${section.id}`}>{section.title}</a>
          </h2>
          {section.render(inputs)}
        </section>
      ))}
      <footer>
        inferscope {trace.tool_version} · session {trace.data.session.id} · {trace.data.session.started_at} ·
        the page holds its data as {trace.schema} JSON in <code>#profile-data</code>
      </footer>
    </Page>
  );
  return `<!DOCTYPE html>\n${String(page)}\n`;
}
