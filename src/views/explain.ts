import type { Document, Issue } from '../model/document.js';
import type { ExplainResult } from '../model/documents/explain.js';
import { explanationBlocks } from './explain-blocks.js';
import { isMinor, type Shown } from './findings.js';
import { waterfallData } from './explain-series.js';
import type { Block, Section, View } from './block.js';

/** What `explain` says of a session: sentences, waterfalls, findings, what to do next. */
export function explainView(document: Document<ExplainResult>, shown: Shown = {}): View {
  const { data, issues } = document;
  return {
    command: 'explain',
    title: data.session.name ?? data.session.title,
    document,
    session: data.session,
    lead: [
      { t: 'headline', sentences: data.sentences },
      { t: 'issues', issues: issues.filter(({ severity }) => severity !== 'info') },
    ],
    sections: [
      ...explanationBlocks(data, shown),
      ...(data.next_steps.length > 0
        ? [
            {
              id: 'next',
              title: 'Next',
              level: 2,
              blocks: [{ t: 'commands', items: data.next_steps }],
            } satisfies Section,
          ]
        : []),
    ],
    sources: { explain: waterfallData(data) },
  };
}

/** A view that its session's explanation leads: sentences first, waterfall and findings before its own sections. */
export function withExplanation(view: View, explain: Document<ExplainResult> | null): View {
  if (!explain) return view;
  const { data } = explain;
  const sections = explanationBlocks(data, { more: data.session.name ?? data.session.id });
  if (view.explains === 'findings') {
    const findings = sections.filter(({ id }) => id === 'findings');
    return { ...view, sections: [...findings, ...view.sections] };
  }
  const { first, rest } = firstScreen(view.lead);
  return {
    ...view,
    lead: [{ t: 'headline', sentences: headline(data) }, ...first],
    sections: [
      ...sections.map((section) => ({ ...section, half: true })),
      ...(rest.length > 0 ? [{ id: 'overview', title: 'Overview', blocks: rest }] : []),
      ...view.sections,
    ],
    sources: { ...view.sources, explain: waterfallData(data) },
  };
}

/** The sentences; where findings follow, without the last, which is the first of them. */
const headline = ({ sentences, findings }: ExplainResult): string[] =>
  findings.some((one) => !isMinor(one)) ? sentences.slice(0, -1) : sentences;

/** What of a view's own lead is before waterfall and findings: warnings, answers and figures; the rest follows them. */
function firstScreen(lead: readonly Block[]): { first: Block[]; rest: Block[] } {
  const isQuiet = ({ severity }: Issue): boolean => severity === 'info';
  const first: Block[] = [];
  const rest: Block[] = [];
  for (const block of lead) {
    if (block.t === 'issues') {
      first.push({ ...block, issues: block.issues.filter((one) => !isQuiet(one)) });
      rest.push({ ...block, issues: block.issues.filter(isQuiet) });
    } else (block.t === 'cards' || block.t === 'facts' ? first : rest).push(block);
  }
  return { first, rest };
}
