import type { Diagnosis } from '../../../model/documents/profile.js';
import { diagnosisTexts } from '../../diagnosis.js';
import { missingReasons } from '../../words.js';
import { Absent, DataTable, FigureText, MissingNotes } from '../parts.js';
import type { Section } from '../section.js';

const costs = ['kernels', 'scheduling', 'allocation', 'host'] as const;

type Verdict = Diagnosis & { shares: NonNullable<Diagnosis['shares']> };
const isVerdict = (entry: Diagnosis): entry is Verdict => entry.shares !== undefined;

export const diagnosisSection: Section = {
  id: 'costs',
  title: 'What costs',
  render: ({ data }) => {
    const texts = diagnosisTexts(data);
    const verdicts = texts.map(({ entry }) => entry).filter(isVerdict);
    if (texts.length === 0) {
      return (
        <Absent
          what="There is no diagnosis."
          why="The document was written by a version of inferscope that made none: inferscope report makes it anew."
        />
      );
    }
    return (
      <>
        <ol class="help">
          {texts.map(({ text, decision }) => (
            <li>
              {text}
              {decision !== null && <small>{decision}</small>}
            </li>
          ))}
        </ol>
        {verdicts.length > 0 && (
          <>
            <DataTable
              caption="Share of the measured time; what the shares leave is not explained"
              columns={[{ head: 'stage' }, ...costs.map((head) => ({ head, numeric: true }))]}
              rows={verdicts.map(({ stage, shares }) => [
                stage,
                ...costs.map((cost) => <FigureText figure={shares[cost]} />),
              ])}
            />
            <MissingNotes
              reasons={missingReasons(
                verdicts.flatMap(({ stage, shares }) =>
                  costs.map((cost): [string, typeof shares.host] => [`${stage} ${cost}`, shares[cost]]),
                ),
              )}
            />
          </>
        )}
      </>
    );
  },
};
