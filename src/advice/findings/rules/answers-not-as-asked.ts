import type { Rule } from '../rule.js';
import { servingDoubt } from '../serving-doubt.js';

/** Answers that failed or are not what was asked for: latencies of the rest flatter the server. */
export const answersNotAsAsked: Rule = {
  id: 'answers_not_as_asked',
  title: 'Answers that failed or are not what was asked for',
  docs: {
    finds: 'Requests failed, or answers do not have the length that was asked for.',
    needs: 'a load test (`inferscope bench serve`)',
    gain: 'None: it makes the figures doubtful.',
    change: 'Find out what the server refuses, and let each answer have its length.',
    withheld: 'all answers are as requested',
  },
  references: [],
  find: (context) =>
    servingDoubt(
      context,
      ['all_failed', 'requests_failed', 'output_shorter', 'output_longer', 'requests_cancelled'],
      {
        name: 'Not the load that was asked for',
        cause:
          'Requests that fail, end early or run on are another load than the plan: means are of the others, and throughput counts fewer or more tokens.',
        change: {
          kind: 'config',
          text: 'Find out from the failures what the server refuses, and let every answer have its length.',
          example: '"ignore_eos": true, "min_tokens": <output length>',
        },
        check: 'inferscope bench serve with the same load again',
      },
    ),
};
