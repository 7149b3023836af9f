import { opClasses } from '../../../model/classes.js';
import { stagesWithOperators } from '../../charts/classes.js';
import { formatMsColumn, noValue } from '../../format.js';
import { layerName } from '../../names.js';
import { Absent, ChartBox, ClassLegend, DataTable, Swatch } from '../parts.js';
import type { Section } from '../section.js';

export const layersSection: Section = {
  id: 'layers',
  title: 'Operators by layer',
  render: ({ data }) => {
    const stages = stagesWithOperators(data).filter(({ breakdown }) => breakdown.by_layer.length > 0);
    if (stages.length === 0) {
      return (
        <Absent
          what="No operator could be tied to a layer."
          why="Layers come from the operators' names in the trace, which is missing."
        />
      );
    }
    const classesOf = (index: number) =>
      opClasses.filter((opClass) =>
        stages[index]?.breakdown.by_layer.some((layer) =>
          layer.by_class.some((row) => row.class === opClass),
        ),
      );
    return (
      <>
        <ClassLegend
          classes={opClasses.filter((opClass) =>
            stages.some((_, index) => classesOf(index).includes(opClass)),
          )}
        />
        <div class="two">
          {stages.map(({ kind, breakdown }, index) => {
            const classes = classesOf(index);
            const totals = formatMsColumn(breakdown.by_layer.map((layer) => layer.ms));
            return (
              <div>
                <h3>{kind === 'decode' ? 'One decode step' : 'Prefill'}</h3>
                <ChartBox
                  name="layers"
                  part={kind}
                  result={data}
                  label={`Operator time of ${kind} by decoder layer, stacked by class`}
                >
                  <DataTable
                    caption={`${kind}: operator time by layer, ms`}
                    columns={[
                      { head: 'layer' },
                      { head: 'all', numeric: true },
                      ...classes.map((opClass) => ({ head: <Swatch class={opClass} />, numeric: true })),
                    ]}
                    rows={breakdown.by_layer.map((layer, row) => [
                      layerName(layer.layer),
                      totals[row],
                      ...classes.map((opClass) => {
                        const found = layer.by_class.find((entry) => entry.class === opClass);
                        return found ? formatMsColumn([found.ms, layer.ms])[0] : noValue;
                      }),
                    ])}
                  />
                </ChartBox>
              </div>
            );
          })}
        </div>
      </>
    );
  },
};
