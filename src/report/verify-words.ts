import type { VerifyResult } from '../model/documents/explain.js';
import { noValue } from './format.js';

type Change = VerifyResult['changes'][number];

export const outcomeWords: Record<Change['outcome'], string> = {
  gone: 'gone',
  smaller: 'smaller',
  still_there: 'still there',
  new: 'new',
  not_judged: 'not judged',
};

/** "+5 %": by how much the expectation was too high. */
export const errorWords = ({ error }: Pick<Change, 'error'>): string =>
  error === null ? noValue : `${error > 0 ? '+' : '−'}${Math.round(100 * Math.abs(error))} %`;

export const insideWords = ({ within_interval: inside }: Pick<Change, 'within_interval'>): string =>
  inside === null ? noValue : inside ? 'yes' : 'no';

/** "Score: 1 of 1 inside their intervals, error 5 % (median)."; null where nothing could be graded. */
export function scoreSentence({ score }: Pick<VerifyResult, 'score'>): string | null {
  if (score.graded === 0) return null;
  const error =
    score.median_absolute_error === null
      ? ''
      : `, error ${Math.round(100 * score.median_absolute_error)} % (median)`;
  return `Score: ${score.within_interval} of ${score.graded} inside their intervals${error}.`;
}
