import type { Document } from '../../../model/document.js';
import type { ExplainResult, VerifyResult, WhatIfResult } from '../../../model/documents/explain.js';
import { collapsed } from '../../notices.js';
import { documentPage } from '../document-page.js';
import { LoudNotices } from '../summary-notices.js';
import { explainParts, Sentences } from './explain.js';
import { verifyPart } from './verify.js';
import { whatIfPart } from './what-if.js';

export interface ExplainPageInputs {
  /** Of the session that is explained; of two, of the one before. */
  explain: Document<ExplainResult>;
  /** At most one of these leads the page. */
  whatIf?: Document<WhatIfResult>;
  verify?: Document<VerifyResult>;
}

/**
 * `explain --html`: sentences, what was asked (a prediction, expected beside achieved), waterfall, findings.
 * @param clientScript text of dist/report-client.js, which draws the charts
 */
export function explainReport(
  { explain, whatIf, verify }: ExplainPageInputs,
  { clientScript }: { clientScript: string },
): string {
  const { session } = explain.data;
  const asked = verify ?? whatIf ?? explain;
  const title = verify
    ? `${nameOf(verify.data.before)} → ${nameOf(verify.data.after)}`
    : whatIf
      ? `${nameOf(session)}: what if ${whatIf.data.change}`
      : session.title;
  return documentPage<ExplainResult | WhatIfResult | VerifyResult>({
    title,
    document: asked,
    session,
    summary: (
      <header id="summary">
        <p class="kicker">
          inferscope explain · {session.id} · {session.started_at.slice(0, 16).replace('T', ' ')} UTC
        </p>
        <h1>{title}</h1>
        {verify ? (
          <ol class="help" aria-label="What came of it">
            {verify.data.sentences.map((sentence) => (
              <li>{sentence}</li>
            ))}
          </ol>
        ) : (
          <Sentences explain={explain} />
        )}
        <LoudNotices issues={collapsed(asked.issues).filter(({ severity }) => severity !== 'info')} />
      </header>
    ),
    lead: [
      ...(verify ? [verifyPart(verify.data)] : []),
      ...(whatIf ? [whatIfPart(whatIf.data, whatIf.issues)] : []),
      ...explainParts(explain),
    ],
    sections: [],
    clientScript,
  });
}

const nameOf = ({ name, id }: ExplainResult['session']): string => name ?? id;
