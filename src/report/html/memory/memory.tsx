import type { FC } from 'hono/jsx';
import type { Document } from '../../../model/document.js';
import type { MemoryResult } from '../../../model/documents/memory-result.js';
import { formatMs } from '../../format.js';
import { memorySentences } from '../../memory-sentences.js';
import { gbText } from '../../memory-words.js';
import { pointLabels } from '../../../vocabulary/memory-points.js';
import { collapsed } from '../../notices.js';
import { documentPage, type Explanation, withoutWaterfall } from '../document-page.js';
import { LoudNotices, QuietNotes } from '../summary-notices.js';
import { allocationsSection, breakdownSection, gpusSection, pointsSection } from './breakdown.js';
import { environmentSection, latencySection, memoryDefinitionsSection } from './definitions.js';
import type { MemorySection } from './memory-parts.js';
import { fragmentationSection, stackSection, timelineSection } from './timeline.js';

/** In the order of reading, behind where the memory went. */
const sections: MemorySection[] = [
  timelineSection,
  pointsSection,
  gpusSection,
  stackSection,
  fragmentationSection,
  allocationsSection,
  latencySection,
  environmentSection,
  memoryDefinitionsSection,
];

const Summary: FC<{ document: Document<MemoryResult> }> = ({ document: { data, issues } }) => {
  const { session, profile } = data;
  const { memory_measurements: measured, latency_stats: latency } = profile;
  const said = collapsed(issues);
  return (
    <header id="summary">
      <p class="kicker">
        inferscope memory · {session.id} · {session.started_at.slice(0, 16).replace('T', ' ')} UTC
      </p>
      <h1>{session.title}</h1>
      {profile.metadata.status === 'partial' && (
        <p class="identity">the run ended early: points that it did not reach are missing</p>
      )}
      <dl class="lead">
        {memorySentences(data).map((text, index) => (
          <div>
            <dt>{index === 0 ? 'Findings' : ''}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      <LoudNotices issues={said.filter(({ severity }) => severity !== 'info')} />
      <ul class="cards" aria-label="The three points">
        {(['baseline', 'post_warmup', 'peak'] as const).map((name) => (
          <li>
            <p class="label">
              <a href="#points">{pointLabels[name]}</a>
            </p>
            <p class="value">{gbText(measured[name].total_gb)}</p>
            <p class="note">
              {measured[name].source ?? profile.missing[`memory_measurements.${name}.total_gb`] ?? ''}
            </p>
          </li>
        ))}
        <li>
          <p class="label">
            <a href="#latency">latency</a>
          </p>
          <p class="value">{latency.mean_latency_ms === null ? '–' : formatMs(latency.mean_latency_ms)}</p>
          <p class="note">
            {latency.tokens_per_second !== null && `${latency.tokens_per_second.toFixed(0)} output tokens/s`}
          </p>
        </li>
      </ul>
      <QuietNotes issues={said.filter(({ severity }) => severity === 'info')} />
    </header>
  );
};

/**
 * The HTML report of a memory profile: one page without any remote asset.
 * @param clientScript text of dist/report-client.js, which draws the charts
 */
export function memoryReport(
  document: Document<MemoryResult>,
  { clientScript, explanation }: { clientScript: string; explanation?: Explanation | undefined },
): string {
  const { session } = document.data;
  const { id, title, render } = breakdownSection;
  return documentPage({
    title: session.title,
    document,
    session,
    summary: <Summary document={document} />,
    // Where it went stands for the waterfall: findings follow it.
    lead: [{ id, title, body: render(document) }, ...withoutWaterfall(explanation)],
    sections,
    clientScript,
  });
}
