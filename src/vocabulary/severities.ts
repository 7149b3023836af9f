import type { Issue } from '../model/document.js';

/** How an issue, or a flag of a benchmark, is introduced; the same in the terminal, in Markdown and in answers. */
export const severityLabels: Readonly<Record<Issue['severity'] | 'good', string>> = {
  good: 'good',
  error: 'error',
  warning: 'warning',
  info: 'note',
};
