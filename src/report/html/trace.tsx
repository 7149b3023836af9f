import type { Child } from 'hono/jsx';
import { Page } from './page.js';
import { copiesSection, overlapSection } from './trace/copies.js';
import { lossesSection, traceDefinitionsSection, traceEnvironmentSection } from './trace/environment.js';
import { idleSection, launchesSection } from './trace/idle.js';
import type { TraceDocument, TraceReportInputs, TraceSection } from './trace/inputs.js';
import { kernelsSection, traceClassesSection } from './trace/kernels.js';
import { traceMemorySection } from './trace/memory.js';
import { traceOperatorsSection } from './trace/operators.js';
import { phasesSection } from './trace/phases.js';
import { TraceSummary } from './trace/summary.js';
import { gpuTelemetrySection } from './trace/telemetry.js';
import { gpuTimelineSection } from './trace/timeline.js';
import { utilizationSection } from './trace/utilization.js';

/** In the order of reading: what someone in a hurry needs is first. */
const workSections: TraceSection[] = [
  phasesSection,
  utilizationSection,
  gpuTimelineSection,
  idleSection,
  kernelsSection,
  traceClassesSection,
  launchesSection,
  copiesSection,
  overlapSection,
  traceOperatorsSection,
];

/** Sections that say nothing of a program that uses no GPU. */
const anywhere = new Set([traceOperatorsSection, utilizationSection]);
const ofGpu = new Set(workSections.filter((one) => !anywhere.has(one)).map(({ id }) => id));

/** After what other captures of the session say. */
const contextSections: TraceSection[] = [
  traceMemorySection,
  gpuTelemetrySection,
  lossesSection,
  traceEnvironmentSection,
  traceDefinitionsSection,
];

interface Part {
  id: string;
  title: string;
  body: Child;
}

const partsOf = (sections: TraceSection[], trace: TraceDocument | null): Part[] =>
  trace === null
    ? []
    : sections
        .filter(({ applies }) => applies?.(trace) ?? true)
        .filter(({ id }) => trace.data.source.gpu_used || !ofGpu.has(id))
        .map(({ id, title, render }) => ({ id, title, body: render(trace) }));

/**
 * The HTML report of a GPU session: one page without any remote asset.
 * @param clientScript text of dist/report-client.js, which draws the charts
 */
export function traceReport(inputs: TraceReportInputs, { clientScript }: { clientScript: string }): string {
  const { trace, counters, gemms, explanation, between = [], title: named } = inputs;
  const parts: Part[] = [
    ...(explanation?.sections ?? []),
    ...partsOf(workSections, trace),
    ...between,
    ...partsOf(contextSections, trace),
  ];
  const title = trace?.data.session.title ?? named ?? 'GPU session';
  const source = trace ?? counters ?? gemms;
  const page = (
    <Page
      title={`${title} · inferscope`}
      contents={[...(trace ? [{ id: 'summary', title: 'Summary' }] : []), ...parts]}
      data={source}
      clientScript={clientScript}
    >
      {trace ? (
        <TraceSummary trace={trace} sentences={explanation?.sentences} />
      ) : (
        <header id="summary">
          <h1>{title}</h1>
          {explanation?.sentences}
          <p>The session has no timeline: there is nothing to say about phases and idle time.</p>
        </header>
      )}
      {parts.map(({ id, title: heading, body }) => (
        <section id={id} aria-labelledby={`${id}-title`}>
          <h2 id={`${id}-title`}>
            <a href={`#${id}`}>{heading}</a>
          </h2>
          {body}
        </section>
      ))}
      <footer>
        inferscope {source?.tool_version}
        {trace && ` · session ${trace.data.session.id} · ${trace.data.session.started_at}`}
        {source && (
          <>
            {' '}
            · the page holds its data as {source.schema} JSON in <code>#profile-data</code>
          </>
        )}
      </footer>
    </Page>
  );
  return `<!DOCTYPE html>\n${String(page)}\n`;
}
