import type { Document, Issue } from '../model/document.js';
import type { ExplainResult } from '../model/documents/explain.js';
import { explanationBlocks } from './explain-blocks.js';
import { modelFacts } from './model-facts.js';
import { identityWords } from '../vocabulary/workload.js';
import type { FindingOptions } from './findings.js';
import { rooflinePeaks, stageRows, unknownRooflines } from './stage-rows.js';
import type { Block, Section, View } from './block.js';

/** The view of `explain`: key sentences, waterfalls, findings, next commands. */
export function explainView(document: Document<ExplainResult>, options: FindingOptions = {}): View {
  const { data, issues } = document;
  return {
    command: 'explain',
    title: data.session.name ?? data.session.title,
    document,
    session: data.session,
    lead: [
      ...identity(data),
      { type: 'facts', level: 3, items: modelFacts(data.workload) },
      headline(data, rooflinePeaks(data)),
      {
        type: 'issues',
        issues: issues.filter((issue) => issue.severity !== 'info' && !isStated(issue, data)),
      },
    ],
    sections: [...explanationBlocks(data, options), ...nextSection(data)],
  };
}

/** Workload, hardware and shape, if the title does not contain them. */
function identity({ workload, session }: ExplainResult): Block[] {
  const words = workload ? identityWords(workload) : '';
  return words === '' || session.title === words ? [] : [{ type: 'text', text: words }];
}

const nextSection = ({ next_steps: items }: ExplainResult): Section[] =>
  items.length === 0 ? [] : [{ id: 'next', title: 'Next', level: 2, blocks: [{ type: 'commands', items }] }];

/** Adds the session's explanation to a view: key sentences, waterfall and findings before its sections, next commands after them. */
export function withExplanation(
  view: View,
  explain: Document<ExplainResult> | null,
  { places, whatIf }: Pick<FindingOptions, 'places' | 'whatIf'> = {},
): View {
  if (!explain) return view;
  const { data } = explain;
  const sections = explanationBlocks(data, {
    tables: true,
    places,
    whatIf,
    withWaterfalls: view.explains !== 'findings',
  });
  if (view.explains === 'findings') {
    const findings = sections.filter(({ id }) => id === 'findings');
    return { ...view, sections: [...findings, ...view.sections] };
  }
  const { first, rest } = firstScreen(withoutStatedIssues(view, explain).lead);
  return {
    ...view,
    lead: [
      headline(data),
      ...rooflinePeaks(data).map((text): Block => ({ type: 'text', level: 2, text })),
      ...first,
    ],
    sections: [
      ...sections.map((section) => ({ ...section, half: true })),
      ...(rest.length > 0 ? [{ id: 'overview', title: 'Overview', blocks: rest }] : []),
      ...view.sections,
      ...nextSection(data),
    ],
  };
}

/** Key sentences and rows of the leading stages; bars and findings follow. */
const headline = (data: ExplainResult, peaks: readonly string[] = []): Block => ({
  type: 'headline',
  sentences: [...data.preface, ...unknownRooflines(data), ...peaks],
  rows: stageRows(data),
});

/** Issues that the preface already states for a busy machine. */
const machineIssueCodes = new Set(['machine_not_idle', 'cpu_steal']);

const isStated = ({ code }: Issue, { machine }: ExplainResult): boolean =>
  machine.busy && machineIssueCodes.has(code);

/** Removes issues that the explanation above a view states. */
export function withoutStatedIssues(view: View, explain: Document<ExplainResult> | null): View {
  if (!explain) return view;
  return {
    ...view,
    lead: view.lead.map((block) =>
      block.type === 'issues'
        ? { ...block, issues: block.issues.filter((issue) => !isStated(issue, explain.data)) }
        : block,
    ),
  };
}

/** Removes from a summary what the explanation above it states. */
export function withoutRepeats(view: View, explain: Document<ExplainResult> | null): View {
  if (!explain) return view;
  const { sections, ...shown } = withoutStatedIssues(view, explain);
  return {
    ...shown,
    sections: sections.filter(({ restated }) => explain.data.stages.length === 0 || restated !== true),
  };
}

/** Cards that fit one row. */
const firstCards = 4;

/**
 * Splits a view's lead. `first` goes before waterfall and findings, which must be on the first screen: one row of cards (or
 * facts), errors, and warnings, folded if there are several. `rest` follows them.
 */
function firstScreen(lead: readonly Block[]): { first: Block[]; rest: Block[] } {
  const first: Block[] = [];
  const rest: Block[] = [];
  const hasCards = lead.some(({ type }) => type === 'cards');
  for (const block of lead) {
    if (block.type === 'issues') {
      const issuesOf = (which: Issue['severity']) =>
        block.issues.filter(({ severity }) => severity === which);
      const warnings = issuesOf('warning');
      const foldedWarnings = {
        type: 'fold',
        title: 'Warnings',
        blocks: [{ type: 'issues', issues: warnings }],
      };
      first.push({ ...block, issues: [...issuesOf('error'), ...(warnings.length > 1 ? [] : warnings)] });
      if (warnings.length > 1) first.push(foldedWarnings as Block);
      if (issuesOf('info').length > 0) rest.push({ ...block, issues: issuesOf('info') });
    } else if (block.type === 'cards' && block.restated) {
      continue;
    } else if (block.type === 'cards') {
      first.push({ ...block, cards: block.cards.slice(0, firstCards) });
      const more = block.cards.slice(firstCards);
      if (more.length > 0) rest.push({ ...block, cards: more });
    } else (block.type === 'facts' && !hasCards ? first : rest).push(block);
  }
  return { first, rest };
}
