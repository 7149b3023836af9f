import type { Issue } from '../model/document.js';
import type { Architecture } from './architecture.js';

/** A warning for results from a config with unknown keys; empty if all are known. */
export const unreadKeysIssues = ({ unreadKeys, family }: Architecture): Issue[] =>
  unreadKeys.length === 0
    ? []
    : [
        {
          code: 'config_keys_unread',
          severity: 'warning',
          text: `Sizes may be off: the ${family} family does not read these keys of the config: ${unreadKeys.join(', ')}.`,
        },
      ];
