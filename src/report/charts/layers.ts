import { opClasses } from '../../model/classes.js';
import { formatMs, formatNumber } from '../format.js';
import { classLabels } from '../../vocabulary/op-classes.js';
import { layerName } from '../names.js';
import { classColors } from '../palette.js';
import { axisName, axisStyle, base, grid, tip, type Chart } from './chart.js';

/** Operator time a decoder layer, stacked by class. `part`: stage kind. */
export const layersChart: Chart = {
  height: () => 240,
  build: (input) => {
    const layers = input.result.stages.find(({ kind }) => kind === input.part)?.breakdown?.by_layer ?? [];
    const present = opClasses.filter((opClass) =>
      layers.some((layer) => layer.by_class.some((row) => row.class === opClass)),
    );
    return {
      ...base(input),
      grid: grid(),
      xAxis: {
        type: 'category',
        data: layers.map(({ layer }) => (layer === null ? 'outside' : String(layer))),
        ...axisStyle(input),
        ...axisName('decoder layer', 24),
      },
      yAxis: {
        type: 'value',
        ...axisStyle(input),
        axisLabel: { color: input.theme.muted, formatter: (value: number) => formatNumber(value, 2) },
        ...axisName('ms', 40),
      },
      series: present.map((opClass) => ({
        type: 'bar',
        name: classLabels[opClass],
        stack: 'ms',
        barCategoryGap: '25%',
        itemStyle: { color: classColors[opClass] },
        data: layers.map((layer) => layer.by_class.find((row) => row.class === opClass)?.ms ?? 0),
        tooltip: {
          formatter: (params) => {
            const { dataIndex, value } = params as { dataIndex: number; value: number };
            const layer = layers[dataIndex];
            if (!layer) return '';
            return tip(
              `${layerName(layer.layer)}, ${classLabels[opClass]}`,
              formatMs(value),
              `${formatMs(layer.ms)} in all classes`,
            );
          },
        },
      })),
    };
  },
};
