import type { Document } from '../../../model/document.js';
import type { ValidatedProfile, Validation } from '../../../model/documents/validate.js';
import { formatBytes, formatPercent, noValue } from '../../format.js';
import { componentWords } from '../../memory-words.js';
import {
  errorCells,
  errorHeads,
  groupWords,
  notMeasuredWords,
  resultWords,
  runWords,
  signedBytes,
  signedShare,
} from '../../validate-words.js';
import { documentPage, type PageSection } from '../document-page.js';
import { DataTable } from '../parts.js';

const numeric = (head: string) => ({ head, numeric: true });

const errors: PageSection<Validation> = {
  id: 'errors',
  title: 'Errors by component',
  applies: ({ data }) => data.counts.compared > 0,
  render: ({ data }) => {
    const notMeasured = notMeasuredWords(data.profiles);
    return (
      <>
        <DataTable
          caption={`Estimated − measured, as a share of the measured. Within: ${formatPercent(data.tolerance)} of the total, ${formatPercent(data.component_tolerance.share)} or ${formatBytes(data.component_tolerance.bytes)} of a component`}
          columns={[{ head: 'component' }, ...errorHeads.map(numeric)]}
          rows={[
            ...data.components.map((row) => [componentWords[row.component], ...errorCells(row)]),
            ['total', ...errorCells(data.total)],
          ]}
        />
        <DataTable
          caption="The total, by what the profiles differ in"
          columns={[{ head: 'by' }, { head: 'value' }, ...errorHeads.map(numeric)]}
          rows={data.groups.map((row) => [groupWords[row.by], row.value, ...errorCells(row)])}
        />
        {notMeasured !== null && <p>Not measured: {notMeasured}.</p>}
      </>
    );
  },
};

function componentText(profile: ValidatedProfile): string {
  const beyond = profile.components.filter(({ within }) => !within);
  return beyond
    .map(
      ({ component, error_bytes, error_share }) =>
        `${componentWords[component]} ${signedBytes(error_bytes)} (${signedShare(error_share)})`,
    )
    .join(', ');
}

/** Sentences for as many as anybody reads; the CSV has one for each. */
const explained = 10;

const profiles: PageSection<Validation> = {
  id: 'profiles',
  title: 'Profiles, worst first',
  applies: ({ data }) => data.counts.compared > 0,
  render: ({ data }) => {
    const compared = data.profiles.filter(({ total }) => total !== null);
    const doubtful = compared.filter(({ reasons }) => reasons.length > 0);
    const manyGpus = new Set(compared.map(({ gpu }) => gpu)).size > 1;
    return (
      <>
        <DataTable
          caption={`Totals, and components beyond their tolerance${manyGpus ? '' : `; ${compared[0]?.gpu ?? 'GPU not known'}`}`}
          columns={[
            { head: 'run', wraps: true },
            ...(manyGpus ? [{ head: 'GPU' }] : []),
            numeric('measured'),
            numeric('estimated'),
            numeric('error'),
            { head: 'components beyond', wraps: true },
          ]}
          rows={compared.map((profile) => [
            runWords(profile),
            ...(manyGpus ? [profile.gpu ?? noValue] : []),
            formatBytes(profile.total!.measured_bytes),
            formatBytes(profile.total!.estimated_bytes),
            profile.total!.within ? (
              signedShare(profile.total!.error_share)
            ) : (
              <span class="fault">{signedShare(profile.total!.error_share)}</span>
            ),
            componentText(profile) || 'none',
          ])}
        />
        <h3>What makes most of the error</h3>
        <ul class="notes">
          {compared.slice(0, explained).map((profile) => (
            <li>
              <strong>{runWords(profile)}:</strong> {profile.explanation ?? noValue}
            </li>
          ))}
        </ul>
        {doubtful.length > 0 && (
          <>
            <h3>To know of these profiles</h3>
            <ul class="notes">
              {doubtful.map(({ source, reasons }) => (
                <li>
                  <strong>{source}:</strong> {reasons.join(' ')}
                </li>
              ))}
            </ul>
          </>
        )}
      </>
    );
  },
};

const rejected: PageSection<Validation> = {
  id: 'rejected',
  title: 'Rejected and not comparable',
  applies: ({ data }) => data.counts.rejected + data.counts.skipped > 0,
  render: ({ data }) => (
    <DataTable
      caption="Measurements that cannot be what they say, and runs that the calculator knows nothing of"
      columns={[
        { head: 'run', wraps: true },
        { head: 'status' },
        { head: 'why', wraps: true },
        { head: 'profile', wraps: true },
      ]}
      rows={data.profiles
        .filter(({ status }) => status !== 'compared')
        .map((profile) => [runWords(profile), profile.status, profile.reasons.join(' '), profile.source])}
    />
  ),
};

const constants: PageSection<Validation> = {
  id: 'recommendations',
  title: 'Recommendations',
  render: ({ data }) =>
    data.recommendations.length === 0 ? (
      <p>No constant of the calculator is off by more than these profiles scatter.</p>
    ) : (
      <DataTable
        caption="Constants that are off, and the value that fits: the median of what would have been right in each profile"
        columns={[
          { head: 'constant' },
          numeric('now'),
          numeric('fits'),
          numeric('profiles'),
          numeric('mean error now'),
          numeric('with it'),
        ]}
        rows={data.recommendations.map((one) => {
          const value = (of: number): string => (one.unit === 'bytes' ? formatBytes(of) : of.toFixed(3));
          return [
            one.constant,
            value(one.current),
            value(one.fitted),
            String(one.profiles),
            formatBytes(one.error_before_bytes),
            formatBytes(one.error_after_bytes),
          ];
        })}
      />
    ),
};

/** The page of a validation. */
export function validateReport(
  document: Document<Validation>,
  { clientScript }: { clientScript: string },
): string {
  const { data } = document;
  const summary = (
    <header id="summary">
      <h1>Calculator against measurement</h1>
      <p>
        {data.result === 'passed' ? 'Passed' : data.result === 'failed' ? 'Failed' : 'Nothing compared'}:{' '}
        {resultWords(data)}.
      </p>
    </header>
  );
  return documentPage({
    title: 'validate: calculator against measurement',
    document,
    session: data.session ?? { id: 'not kept', started_at: '' },
    summary,
    sections: [errors, profiles, rejected, constants],
    clientScript,
  });
}
