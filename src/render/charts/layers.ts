import { opClasses } from '../../model/classes.js';
import { formatMs, formatNumber } from '../../vocabulary/format.js';
import { classLabels, layerText } from '../../vocabulary/op-classes.js';
import { classColors } from '../palette.js';
import { axisName, axisStyle, base, grid, tip, type Chart } from './chart.js';
import { classKey } from './classes.js';

/** Operator time per decoder layer, stacked by class. `part`: stage kind. */
export const layersChart: Chart = {
  height: () => 240,
  key: (result, part) => {
    const layers = result.stages.find(({ kind }) => kind === part)?.breakdown?.by_layer ?? [];
    return classKey((name) => layers.some(({ by_class }) => by_class.some((row) => row.class === name)));
  },
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
              `${layerText(layer.layer)}, ${classLabels[opClass]}`,
              formatMs(value),
              `${formatMs(layer.ms)} in all classes`,
            );
          },
        },
      })),
    };
  },
};
