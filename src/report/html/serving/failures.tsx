import type { ServingPoint } from '../../../model/documents/serving.js';
import type { Figure } from '../../../model/figure.js';
import { byLoad, levelLabel } from '../../charts/serving/levels.js';
import { formatCount, formatPercent } from '../../format.js';
import { missingReasons } from '../../words.js';
import { DataTable, MissingNotes } from '../parts.js';
import { Counted, type ServingSection } from './serving-parts.js';

export const failuresSection: ServingSection = {
  id: 'failures',
  title: 'Requests that failed',
  applies: ({ data }) => data.points.some(({ requests }) => requests.failed + requests.cancelled > 0),
  render: ({ data }) => (
    <>
      <p>They are counted here and in no latency or rate of successes.</p>
      <DataTable
        caption="By load and kind"
        columns={[
          { head: 'load' },
          { head: 'kind' },
          { head: 'count', numeric: true },
          { head: 'share', numeric: true },
          { head: 'example', wraps: true },
        ]}
        rows={byLoad(data).flatMap((point) => [
          ...point.requests.failures.map(({ kind, count, example }) => [
            levelLabel(point),
            kind.replaceAll('_', ' '),
            formatCount(count),
            point.requests.counted > 0 ? formatPercent(count / point.requests.counted) : '',
            example ?? '',
          ]),
          ...(point.requests.cancelled > 0
            ? [
                [
                  levelLabel(point),
                  'cancelled by us',
                  formatCount(point.requests.cancelled),
                  '',
                  'not counted',
                ],
              ]
            : []),
        ])}
      />
    </>
  ),
};

const tokenFigures: [name: string, of: (point: ServingPoint) => Figure][] = [
  ['prompt tokens', ({ tokens }) => tokens.input],
  ['output tokens', ({ tokens }) => tokens.output],
  ['of the prompt from a cache', ({ tokens }) => tokens.cached_share],
  ['tokenizer − usage', ({ tokens }) => tokens.tokenizer_difference],
];

export const tokensSection: ServingSection = {
  id: 'tokens',
  title: 'Tokens',
  render: ({ data }) => {
    const points = byLoad(data);
    const known = tokenFigures.filter(([, of]) => points.some((point) => of(point).value !== null));
    return (
      <>
        <DataTable
          caption="What was asked for and what came"
          columns={[
            { head: 'load' },
            ...known.map(([head]) => ({ head, numeric: true })),
            { head: 'shorter than asked', numeric: true },
            { head: 'longer', numeric: true },
            { head: 'chunks that are not one token', numeric: true },
          ]}
          rows={points.map((point) => [
            levelLabel(point),
            ...known.map(([, of]) => <Counted figure={of(point)} />),
            formatCount(point.tokens.shorter),
            formatCount(point.tokens.longer),
            formatCount(point.tokens.chunks_not_tokens),
          ])}
        />
        <MissingNotes
          reasons={missingReasons(
            tokenFigures.flatMap(([name, of]): [string, Figure][] => {
              const gone = points.map(of).find(({ value }) => value === null);
              return gone ? [[name, gone]] : [];
            }),
          )}
        />
      </>
    );
  },
};
