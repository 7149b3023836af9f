import type { Issue } from '../model/document.js';
import { plural } from '../vocabulary/format.js';
import type { Architecture, Vision } from './architecture.js';

/** Warnings for results from a config with unknown keys, or of more than a decoder; empty if all is counted. */
export const architectureIssues = ({ unreadKeys, family, partOfLarger, vision }: Architecture): Issue[] => [
  ...(unreadKeys.length === 0
    ? []
    : [
        {
          code: 'config_keys_unread',
          severity: 'warning',
          text: `Sizes may be off: the ${family} family does not read these keys of the config: ${unreadKeys.join(', ')}.`,
        } satisfies Issue,
      ]),
  ...(vision ? [visionIssue(vision)] : []),
  ...(partOfLarger && !vision
    ? [
        {
          code: 'decoder_only',
          severity: 'warning',
          text: 'Only the decoder is counted: the config describes more, such as a vision tower, which adds parameters, memory and time.',
        } satisfies Issue,
      ]
    : []),
];

function visionIssue({ tokensPerImage }: Vision): Issue {
  const tokens =
    tokensPerImage === null ? 'as many tokens as its size requires' : plural(tokensPerImage, 'token');
  return {
    code: 'vision_weights_only',
    severity: 'warning',
    text: `The vision tower and its projector count in parameters and weights, not in FLOPs and times. In the prompt an image has ${tokens}: add them to --input-len.`,
  };
}
