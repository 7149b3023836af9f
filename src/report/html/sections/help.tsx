import { suggestionSentence } from '../../words.js';
import { Absent } from '../parts.js';
import type { Section } from '../section.js';

export const helpSection: Section = {
  id: 'help',
  title: 'What would help',
  render: ({ data }) =>
    data.suggestions.length === 0 ? (
      <Absent
        what="No change is proposed."
        why="Either nothing with a measured basis would make this faster, or the roofline or the operators are missing."
      />
    ) : (
      <ol class="help">
        {data.suggestions.map((suggestion) => (
          <li>
            <strong>{suggestion.stage}</strong>: {suggestionSentence(suggestion)}
            <small>{suggestion.assumption}</small>
          </li>
        ))}
      </ol>
    ),
};
