import { issueCodes } from '../../model/issue-codes.js';
import { reasonCodes } from '../../model/reason-codes.js';
import { code, type Page, page, table } from './markdown.js';

export const codesPage = (): Page =>
  page(
    'codes.md',
    'Codes of issues and missing figures',
    'Codes are stable; texts are not. Errors have codes of their own: [errors](errors.md).',
    '## Issues\n\nWhat is doubtful, lost or left out: `issues` of every JSON document and of `manifest.json`, `flags` of a benchmark. Warnings and errors are shown; `count` says how many.',
    tableOf(issueCodes),
    '## Missing figures\n\nA figure without a value has one of these in `reason.code`.',
    tableOf(reasonCodes),
  );

const tableOf = (codes: Readonly<Record<string, { means: string; fix?: string }>>): string =>
  table(
    ['code', 'meaning', 'what to do'],
    Object.entries(codes).map(([name, { means, fix = '' }]) => [code(name), means, fix]),
  );
