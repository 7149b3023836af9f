import type { FC } from 'hono/jsx';
import type { Evidence, ExplainResult, Finding } from '../../../model/documents/explain.js';
import { gainHead, gainWords } from '../../explain-rows.js';
import { nothingFound, withheldWords } from '../../../model/explain-words.js';
import { formatMs } from '../../format.js';
import { Behind, DataTable } from '../parts.js';

/** Rules that looked and found nothing say why, folded away. */
export const Findings: FC<{ data: ExplainResult }> = ({ data }) => {
  const { findings, rules } = data;
  const withheld = withheldWords(data);
  const quiet = rules.filter(({ outcome }) => outcome !== 'fired');
  return (
    <>
      {findings.length === 0 ? (
        <p>{nothingFound(data)}</p>
      ) : (
        <ol class="findings">
          {findings.map((finding) => (
            <li id={`finding-${anchor(finding.id)}`}>
              <OneFinding
                finding={finding}
                titles={new Map(findings.map(({ id, title }) => [id, title]))}
                session={data.session.name ?? data.session.id}
              />
            </li>
          ))}
        </ol>
      )}
      {withheld !== null && <p>{withheld}</p>}
      {quiet.length > 0 && (
        <Behind title={`${quiet.length} rules found nothing`}>
          <DataTable
            caption="What the other rules saw"
            columns={[{ head: 'rule' }, { head: 'outcome' }, { head: 'why', wraps: true }]}
            rows={quiet.map(({ title, outcome, why }) => [title, outcome.replaceAll('_', ' '), why])}
          />
        </Behind>
      )}
    </>
  );
};

const anchor = (id: string): string => id.replaceAll(/[^\w-]+/g, '-');

const OneFinding: FC<{ finding: Finding; titles: ReadonlyMap<string, string>; session: string }> = ({
  finding,
  titles,
  session,
}) => {
  const { title, severity, gain, at_stake_ms, cause, change, evidence, check, references, hidden_by } =
    finding;
  const tail =
    gain && gain.expected_ms > 0
      ? gainHead(gain)
      : at_stake_ms === null
        ? ''
        : `${formatMs(at_stake_ms)} at stake`;
  return (
    <details>
      <summary>
        <strong class={`severity ${severity}`}>{severity}</strong> {title}
        {tail !== '' && <span class="stake"> ({tail})</span>}
      </summary>
      <dl class="definitions">
        <dt>Cause</dt>
        <dd>{cause}</dd>
        <dt>Change</dt>
        <dd>
          {change.text}
          {change.example !== null && <pre>{change.example}</pre>}
        </dd>
        {gain && (
          <>
            <dt>Gain</dt>
            <dd>
              {gainWords(gain)}. {gain.assumption}
            </dd>
            {gain.what_if !== null && (
              <>
                <dt>Predict</dt>
                <dd>
                  <code>
                    inferscope explain --session {session} --what-if {gain.what_if}
                  </code>
                </dd>
              </>
            )}
          </>
        )}
        {hidden_by !== null && (
          <>
            <dt>Hidden by</dt>
            <dd>
              What it costs is counted in this one, or shows only once that is mended:{' '}
              <a href={`#finding-${anchor(hidden_by)}`}>{titles.get(hidden_by) ?? hidden_by}</a>
            </dd>
          </>
        )}
        <dt>Check</dt>
        <dd>
          <code>{check}</code>
        </dd>
        <dt>Confidence</dt>
        <dd>{finding.confidence}</dd>
        {references.length > 0 && (
          <>
            <dt>Read</dt>
            <dd>
              {references.map(({ title: name, url }, index) => (
                <>
                  {index > 0 && '; '}
                  {/^https?:/.test(url) ? (
                    <a href={url} rel="noreferrer">
                      {name}
                    </a>
                  ) : (
                    name
                  )}
                </>
              ))}
            </dd>
          </>
        )}
      </dl>
      {evidence.map((one) => (
        <EvidenceRows evidence={one} />
      ))}
    </details>
  );
};

/** What the rows show, the rows, and the query that yields them. */
const EvidenceRows: FC<{ evidence: Evidence }> = ({ evidence: { text, sql, rows, row_count } }) => {
  const columns = Object.keys(rows[0] ?? {});
  const isNumber = (name: string) => rows.every((row) => row[name] === null || typeof row[name] === 'number');
  return (
    <div>
      <p>{text}</p>
      {rows.length > 0 && (
        <DataTable
          caption={row_count > rows.length ? `${rows.length} of ${row_count} rows` : 'Evidence'}
          columns={columns.map((head) => ({ head, numeric: isNumber(head) }))}
          rows={rows.map((row) => columns.map((name) => cell(row[name])))}
        />
      )}
      {sql !== null && (
        <Behind title="Query (inferscope sql)">
          <pre>{sql}</pre>
        </Behind>
      )}
    </div>
  );
};

function cell(value: string | number | boolean | null | undefined): string {
  if (value === null || value === undefined) return '–';
  if (typeof value !== 'number' || Number.isInteger(value)) return String(value);
  return String(Number(value.toPrecision(6)));
}
