import type { FC } from 'hono/jsx';
import type { Document } from '../../../model/document.js';
import type { MemoryResult } from '../../../model/documents/memory-result.js';
import { formatMs, formatPercent } from '../../format.js';
import { componentWords, gbText } from '../../memory-words.js';
import { memoryPointNames } from '../../names.js';
import { collapsed } from '../../notices.js';
import { documentPage } from '../document-page.js';
import { LoudNotices, QuietNotes } from '../summary-notices.js';
import { allocationsSection, breakdownSection, gpusSection, pointsSection } from './breakdown.js';
import { environmentSection, latencySection, memoryDefinitionsSection } from './definitions.js';
import type { MemorySection } from './memory-parts.js';
import { fragmentationSection, stackSection, timelineSection } from './timeline.js';

/** In the order of reading: what someone in a hurry needs is first. */
const sections: MemorySection[] = [
  breakdownSection,
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

/** How full, where it went, how it came: three sentences. */
export function memorySentences({ profile }: MemoryResult): string[] {
  const { memory_measurements: measured, memory_breakdown: parts } = profile;
  const { peak } = measured;
  const room = peak.per_gpu_details.reduce((sum, { total_bytes }) => sum + (total_bytes ?? 0), 0);
  const filled =
    peak.total_bytes !== null && room > 0
      ? ` of ${gbText(room / 1e9)} (${formatPercent(peak.total_bytes / room)})`
      : '';
  const total = parts.total_measured_bytes;
  const largest = parts.components
    .filter(({ component, bytes }) => component !== 'residual' && bytes > 0)
    .toSorted((a, b) => b.bytes - a.bytes)
    .slice(0, 3)
    .map(
      ({ component, bytes, gb }) =>
        `${componentWords[component]} ${gbText(gb)}${total ? ` (${formatPercent(bytes / total)})` : ''}`,
    );
  return [
    peak.total_gb === null
      ? 'The peak was not measured.'
      : `At its peak ${gbText(peak.total_gb)}${filled} were in use.`,
    ...(largest.length > 0
      ? [`The run’s own ${gbText(parts.total_measured_gb)} are mostly ${largest.join(', ')}.`]
      : []),
    ...(measured.warmup_increase_gb !== null && measured.growth_gb !== null
      ? [
          `${gbText(measured.warmup_increase_gb)} came until the end of the warm-up, ${gbText(measured.growth_gb)} after it.`,
        ]
      : []),
  ];
}

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
              <a href="#points">{memoryPointNames[name]}</a>
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
  { clientScript }: { clientScript: string },
): string {
  const { session } = document.data;
  return documentPage({
    title: session.title,
    document,
    session,
    summary: <Summary document={document} />,
    sections,
    clientScript,
  });
}
