import { markOf } from '../../charts/lines.js';
import { byLoad, levelLabel } from '../../charts/serving/levels.js';
import { knownRates, type RatePart } from '../../charts/serving/rate.js';
import { LineKey } from '../line-key.js';
import { DataTable, FigureText } from '../parts.js';
import { asRequests, ServingChart, type ServingSection } from './serving-parts.js';

const parts: [part: RatePart, title: string][] = [
  ['tokens', 'Tokens per second'],
  ['requests', 'Requests per second'],
];

export const servingThroughputSection: ServingSection = {
  id: 'throughput',
  title: 'Throughput against the load',
  render: ({ data }) => (
    <div class="two">
      {parts
        .filter(([part]) => knownRates(data, part).length > 0)
        .map(([part, title]) => {
          const rates = knownRates(data, part);
          return (
            <div>
              <h3>{title}</h3>
              <LineKey label="Rates" entries={rates.map(({ name }, index) => ({ name, ...markOf(index) }))} />
              <ServingChart name="serving_rate" part={part} result={data} label={`${title} against the load`}>
                <DataTable
                  caption={title}
                  columns={[{ head: 'load' }, ...rates.map(({ name }) => ({ head: name, numeric: true }))]}
                  rows={byLoad(data).map((point) => [
                    levelLabel(point),
                    ...rates.map(({ of }) => <FigureText figure={asRequests(of(point))} />),
                  ])}
                />
              </ServingChart>
            </div>
          );
        })}
    </div>
  ),
};
