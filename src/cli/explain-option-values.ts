import type { ContextOptions } from './context-options.js';
export const stageKinds = [
  'prefill',
  'decode',
  'mixed',
  'training',
  'request',
  'sampling',
  'load',
  'warmup',
  'outside',
  'other',
] as const;

export const formats = ['text', 'md', 'json'] as const;

export const severities = ['high', 'medium', 'low'] as const;
export interface ExplainOptions extends ContextOptions {
  session: string;
  stage?: (typeof stageKinds)[number];
  format: (typeof formats)[number];
  json?: boolean;
  html?: string;
  failOn?: (typeof severities)[number];
  rank?: number;
  device?: number;
  limit?: number;
  verbose?: boolean;
  sql?: number;
}
