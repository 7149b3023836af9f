import { formatBytes, formatNumber, formatQuantity, nbsp } from '../../vocabulary/format.js';
import { classLabels } from '../../vocabulary/op-classes.js';
import { bandwidthRoofs, type RooflinePoint, rooflinePoints } from '../../views/profile-series.js';
import { classColors } from '../palette.js';
import { base, type Chart, isNarrow } from './chart.js';
import { classKey } from './classes.js';
import { rooflineOption } from './roofline-plot.js';

const pointName = ({ stage, class: name }: RooflinePoint): string =>
  name === null ? stage : `${classLabels[name]} in ${stage}`;

/** Stage: diamond. Class of prefill: triangle, of decode: circle; the colour is the class's. */
const symbolOf = ({ stage, class: name }: RooflinePoint): { symbol: string; size: number } =>
  name === null
    ? { symbol: 'diamond', size: 17 }
    : { symbol: stage === 'prefill' ? 'triangle' : 'circle', size: 11 };

/** Stages and their classes below this machine's measured roofs. */
export const rooflineChart: Chart = {
  height: () => 400,
  key: (result) => {
    const points = rooflinePoints(result);
    return classKey((name) => points.some((point) => point.class === name));
  },
  build: (input) => {
    const { roofline } = input.result;
    if (!roofline) return base(input);
    const ridge = roofline.ridge_flop_per_byte;
    return rooflineOption(
      input,
      {
        // The last-level cache's label lies above its line, DRAM's below.
        slopes: bandwidthRoofs(roofline).map(({ level, bytes_per_s, working_set_bytes: set }, index) => ({
          text: `${level} ${formatQuantity(bytes_per_s, 'B/s')}${isNarrow(input.width) ? '' : ` at ${formatBytes(set)}`}`,
          bytes_per_s,
          side: index === 0 ? 'right' : 'left',
        })),
        peaks: roofline.compute,
        ridge,
      },
      rooflinePoints(input.result).map((point) => ({
        ...point,
        ...symbolOf(point),
        color: point.class === null ? input.theme.ink : classColors[point.class],
        label: point.class === null ? pointName(point) : null,
        tip: [
          pointName(point),
          `${formatQuantity(point.flops_per_s, 'FLOP/s')} achieved`,
          `${formatNumber(point.intensity)}${nbsp}FLOP/byte`,
        ],
      })),
      [ridge / 20, ridge * 5],
    );
  },
};
