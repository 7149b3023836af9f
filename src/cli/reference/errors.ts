import { type ErrorCode, errorMeanings, exitCodeOf, exitCodes } from '../../model/errors.js';
import { code, type Page, page, table } from './markdown.js';

export const errorsPage = (): Page =>
  page(
    'errors.md',
    'Errors and exit codes',
    'An error states what failed, why, and what to type. With `--json` stdout has an `error` document. Codes are stable.',
    table(['exit code', 'meaning'], Object.entries(exitCodes)),
    table(
      ['code', 'exit code', 'when'],
      (Object.keys(exitCodeOf) as ErrorCode[]).map((errorCode) => [
        code(errorCode),
        String(exitCodeOf[errorCode]),
        errorMeanings[errorCode],
      ]),
    ),
  );
