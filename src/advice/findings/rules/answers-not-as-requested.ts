import type { Rule } from '../rule.js';
import { servingDoubt } from '../serving-doubt.js';

/** Answers that failed or differ from the request: latencies of the remaining ones look too good. */
export const answersNotAsRequested: Rule = {
  id: 'answers_not_as_requested',
  title: 'Answers that failed or differ from the request',
  docs: {
    finds: 'Requests failed, or answers do not have the requested length.',
    needs: 'a load test (`inferscope bench serve`)',
    gain: 'None: it makes the numbers unreliable.',
    change: 'Find out what the server rejects, and make every answer have the requested length.',
    withheld: 'all answers are as requested',
  },
  references: [],
  find: (context) =>
    servingDoubt(
      context,
      ['all_failed', 'requests_failed', 'output_shorter', 'output_longer', 'requests_cancelled'],
      {
        name: 'Not the requested load',
        cause:
          'Requests that fail, stop early or run longer make the load differ from the plan: means cover only the others, and throughput counts fewer or more tokens.',
        change: {
          kind: 'config',
          text: 'Read the failures to see what the server rejects, and make every answer have the requested length.',
          example: '"ignore_eos": true, "min_tokens": <output length>',
        },
        check: 'repeat the load test with the same load',
      },
    ),
};
