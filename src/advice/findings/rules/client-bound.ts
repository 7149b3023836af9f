import type { Rule } from '../rule.js';
import { servingDoubt } from '../serving-doubt.js';

/** The load generator, not the server, was the limit. */
export const clientBound: Rule = {
  id: 'client_bound',
  title: 'Client-bound load test',
  docs: {
    finds: 'The load generator, not the server, was the limit.',
    needs: 'a load test (`inferscope bench serve`)',
    gain: 'None: it makes the numbers unreliable.',
    change:
      'Free the cores of the client of other programs, give it its own machine, or offer less load; more --threads help only an event loop that is busy.',
    withheld: 'the client kept its schedule',
  },
  references: [],
  find: (context) =>
    servingDoubt(context, ['client_bound'], {
      name: 'Client-bound',
      cause:
        'The client sent requests or read answers late: its lag is included in every latency, and a higher load would measure the client again.',
      change: {
        kind: 'flag',
        text: 'Free the cores of the client of other programs, give it its own machine, or offer less load; more --threads help only an event loop that is busy.',
        example: null,
      },
      check: 'repeat the load test with the same load: the client must not be the limit',
    }),
};
