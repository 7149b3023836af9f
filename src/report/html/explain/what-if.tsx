import type { FC } from 'hono/jsx';
import type { WhatIfResult } from '../../../model/documents/explain.js';
import { stageNames } from '../../explain-rows.js';
import { formatMs } from '../../format.js';
import { Absent, DataTable } from '../parts.js';
import type { ExplainPart } from './explain.js';
import { whatIfSentence } from '../../what-if-words.js';

/** Times of the stages under changes that were not run; for the top of a page of the session. */
export const whatIfPart = (
  data: WhatIfResult,
  issues: readonly { code: string; text: string }[],
): ExplainPart => ({
  id: 'what-if',
  title: `What if: ${data.change}`,
  body: (
    <>
      {data.stages.map((stage) => (
        <Stage stage={stage} />
      ))}
      {issues
        .filter(({ code }) => code === 'no_waterfall')
        .map(({ text }) => (
          <Absent what="Not predicted." why={text} />
        ))}
    </>
  ),
});

const Stage: FC<{ stage: WhatIfResult['stages'][number] }> = ({ stage }) => {
  const name = `${stageNames[stage.kind] ?? stage.kind}${stage.point === null ? '' : ` at ${stage.point}`}`;
  const sentence = whatIfSentence(stage, name);
  return (
    <div>
      <h3>{sentence.charAt(0).toUpperCase() + sentence.slice(1)}</h3>
      {stage.bars.length > 0 && (
        <DataTable
          caption="Bars of the waterfall that change, of a mean instance"
          columns={[
            { head: 'bar' },
            { head: 'now', numeric: true },
            { head: 'then', numeric: true },
            { head: 'why', wraps: true },
          ]}
          rows={stage.bars.map(({ id, before_ms: from, after_ms: to, how }) => [
            <code>{id}</code>,
            formatMs(from),
            formatMs(to),
            how,
          ])}
        />
      )}
      {stage.assumptions.length > 0 && (
        <ul class="notes">
          {stage.assumptions.map((text) => (
            <li>Assumed: {text}.</li>
          ))}
        </ul>
      )}
    </div>
  );
};
