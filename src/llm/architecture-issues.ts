import type { Issue } from '../model/document.js';
import type { Architecture } from './architecture.js';

/** Warnings for results from a config with unknown keys, or of more than a decoder; empty if all is counted. */
export const architectureIssues = ({ unreadKeys, family, partOfLarger }: Architecture): Issue[] => [
  ...(unreadKeys.length === 0
    ? []
    : [
        {
          code: 'config_keys_unread',
          severity: 'warning',
          text: `Sizes may be off: the ${family} family does not read these keys of the config: ${unreadKeys.join(', ')}.`,
        } satisfies Issue,
      ]),
  ...(partOfLarger
    ? [
        {
          code: 'decoder_only',
          severity: 'warning',
          text: 'Only the decoder is counted: the config describes more, such as a vision tower, which adds parameters, memory and time.',
        } satisfies Issue,
      ]
    : []),
];
