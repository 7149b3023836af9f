import { rules } from '../../advice/findings/rules/index.js';
import { code, type Page, page, sentence, table } from './markdown.js';

export const rulePages = (): Page[] => [
  page(
    'rules/README.md',
    'Rules',
    '`inferscope explain` judges a session by these rules. A finding has its evidence as a query, its expected gain, and a way to verify the change. The accuracy of the rules is measured on [planted faults](../../concepts/diagnosis.md).',
    table(
      ['rule', 'finds'],
      rules.map(({ id, docs }) => [`[${id}](${id}.md)`, sentence(docs.finds)]),
    ),
  ),
  ...rules.map(({ id, title, docs, references, noise }) =>
    page(
      `rules/${id}.md`,
      title,
      `Rule ${code(id)}. ${sentence(docs.finds)}`,
      `**Needs:** ${sentence(docs.needs)}`,
      `**Gain:** ${sentence(docs.gain)}`,
      `**Change:** ${sentence(docs.change)}`,
      `**No finding:** ${sentence(docs.withheld)}${noise ? ' Withheld on a busy machine, which can cause the same symptom.' : ''}`,
      ...(references.length === 0
        ? []
        : [
            `**Read more:** ${references.map((reference) => `[${reference.title}](${reference.url})`).join(', ')}.`,
          ]),
    ),
  ),
];
