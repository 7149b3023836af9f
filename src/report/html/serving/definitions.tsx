import { formatCount, formatMs, noValue } from '../../format.js';
import { DataTable, DefinitionList } from '../parts.js';
import type { ServingSection } from './serving-parts.js';
import { sloWords } from './summary.js';

export const servingSetupSection: ServingSection = {
  id: 'setup',
  title: 'Target and prompts',
  render: ({ data: { target, prompts, slo, probe } }) => {
    const unit = prompts.tokenizer === null ? 'words' : 'tokens, exact';
    const facts: [string, string][] = [
      ['endpoint', `${target.url} (${target.api})`],
      ['model', target.model],
      ['server', target.server ?? 'unknown: it has no /metrics page that we know'],
      ['prompt', prompts.input_len === null ? noValue : `${formatCount(prompts.input_len)} ${unit}`],
      [
        'output',
        prompts.output_len === null ? noValue : `${formatCount(prompts.output_len)} tokens asked for`,
      ],
      [
        'seed',
        `${prompts.seed}${prompts.seed_used_before ? ', used before: prompts may be in its cache' : ''}`,
      ],
      ['SLO', slo ? sloWords(slo) : 'none'],
      ...(probe
        ? [
            [
              'probe before the loads',
              [
                probe.ttft_ms === null ? null : `first token after ${formatMs(probe.ttft_ms)}`,
                probe.repeated_ttft_ms === null
                  ? null
                  : `the same prompt again after ${formatMs(probe.repeated_ttft_ms)}`,
                probe.caches_prefixes === null
                  ? null
                  : probe.caches_prefixes
                    ? 'it caches prefixes'
                    : 'no prefix cache seen',
                probe.usage ? 'usage is told' : 'usage is not told',
              ]
                .filter((part) => part !== null)
                .join(', '),
            ] as [string, string],
          ]
        : []),
    ];
    return (
      <DataTable
        caption="What was asked of whom"
        class="whole"
        columns={[{ head: '' }, { head: '', wraps: true }]}
        rows={facts}
      />
    );
  },
};

/** Kept in step with docs/measurement.md. */
const definitions: [term: string, text: string][] = [
  ['TTFT', 'Request sent to the first chunk with generated text.'],
  ['TPOT', '(last − first chunk) / (output tokens − 1) of a request; none below two tokens.'],
  ['ITL', 'Every gap between tokens; a chunk of k tokens counts as k gaps.'],
  ['End to end', 'Request sent to the last chunk with content.'],
  [
    'Since the request was due',
    'Of open loads: from the moment the request should have been sent, so that waiting for a slot of the client is inside (coordinated omission).',
  ],
  [
    'Closed, open',
    'A closed load has users who wait for their answer; an open one sends at its rate whatever the server does.',
  ],
  ['Goodput', 'Requests per second that kept every bound of the SLO.'],
  ['95 % interval', 'Of the mean, from the means of ten consecutive batches of requests; none below 20.'],
  ['Percentiles, sd', 'Linear between order statistics (type 7); the sample standard deviation (n − 1).'],
  [
    'Client-bound',
    'The load generator, not the server, set the figures: it sent late, or its event loop was busy.',
  ],
];

export const servingDefinitionsSection: ServingSection = {
  id: 'definitions',
  title: 'Definitions',
  render: () => <DefinitionList terms={definitions} />,
};
