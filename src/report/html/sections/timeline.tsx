import { opClasses } from '../../../model/classes.js';
import { formatCount, formatMs } from '../../format.js';
import { layerName } from '../../names.js';
import { causesOf } from '../../notices.js';
import { Absent, ChartBox, ClassLegend, DataTable, Swatch } from '../parts.js';
import type { Section } from '../section.js';

/** Rows of the table behind the chart; the session's `ops` table has all of them. */
const longest = 200;

export const timelineSection: Section = {
  id: 'timeline',
  title: 'Timeline',
  render: ({ data, issues }) => {
    const { timeline } = data;
    if (!timeline || timeline.stages.length === 0) {
      return (
        <Absent
          what="There is no timeline."
          why="It is made from the runtime's operator trace, which is missing or could not be read."
          issues={causesOf('operators', issues)}
        />
      );
    }
    const count = formatCount(timeline.operators.length);
    const shown = timeline.operators.toSorted((a, b) => b.dur_ms - a.dur_ms).slice(0, longest);
    const which =
      shown.length < timeline.operators.length ? `The ${longest} longest of ${count} operators` : 'Operators';
    return (
      <>
        <p>
          One prefill and the first decode steps of one profiled repeat: {count} operators. A place left empty
          is time in which no operator ran.
        </p>
        <ClassLegend
          classes={opClasses.filter((opClass) =>
            timeline.operators.some((operator) => operator.class === opClass),
          )}
        />
        <ChartBox name="timeline" result={data} label={`Timeline of ${count} operators in their stages`}>
          <DataTable
            caption="Stages"
            columns={[
              { head: 'stage' },
              { head: 'start', numeric: true },
              { head: 'duration', numeric: true },
            ]}
            rows={timeline.stages.map((stage) => [
              stage.label,
              formatMs(stage.start_ms),
              formatMs(stage.dur_ms),
            ])}
          />
          <DataTable
            caption={which}
            columns={[
              { head: 'operator' },
              { head: 'type' },
              { head: 'class' },
              { head: 'layer' },
              { head: 'start', numeric: true },
              { head: 'duration', numeric: true },
            ]}
            rows={shown.map((operator) => [
              <code>{operator.name}</code>,
              operator.op_type,
              <Swatch class={operator.class} />,
              operator.layer === null ? 'outside' : layerName(operator.layer),
              formatMs(operator.start_ms),
              formatMs(operator.dur_ms),
            ])}
          />
        </ChartBox>
      </>
    );
  },
};
