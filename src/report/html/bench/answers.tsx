import type { FC } from 'hono/jsx';
import type { BenchAnswer } from '../../../model/documents/bench.js';
import { Behind, DataTable, FigureText, MissingNotes } from '../parts.js';
import { missingReasons } from '../../words.js';
import type { BenchSection } from './bench-parts.js';

const Answers: FC<{ answers: readonly BenchAnswer[] }> = ({ answers }) => {
  const figures = answers.flatMap(({ figures }) => Object.entries(figures));
  return (
    <>
      <dl class="answers">
        {answers.map(({ question, answer }) => (
          <div>
            <dt>{question}</dt>
            <dd>{answer}</dd>
          </div>
        ))}
      </dl>
      {figures.length > 0 && (
        <Behind title="Figures of these answers">
          <DataTable
            caption="Figures"
            columns={[{ head: '' }, { head: 'value', numeric: true }]}
            rows={figures.map(([name, figure]) => [
              name.replaceAll('_', ' '),
              <FigureText figure={figure} />,
            ])}
          />
          <MissingNotes
            reasons={missingReasons(figures.map(([name, figure]) => [name.replaceAll('_', ' '), figure]))}
          />
        </Behind>
      )}
    </>
  );
};

export const answersSection: BenchSection = {
  id: 'answers',
  title: 'Answers',
  applies: ({ data }) => data.answers.length > 0 || data.variants.some(({ answers }) => answers.length > 0),
  render: ({ data: { answers, variants } }) => (
    <>
      {answers.length > 0 && <Answers answers={answers} />}
      {variants.map((variant) => (
        <>
          {variants.length > 1 && <h3>{variant.label}</h3>}
          <Answers answers={variant.answers} />
        </>
      ))}
    </>
  ),
};
