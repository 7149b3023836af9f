import { opClasses } from '../../../model/classes.js';
import { bandwidthRoofs, rooflinePoints } from '../../charts/roofline.js';
import {
  formatBytes,
  formatCount,
  formatFigure,
  formatNumber,
  formatPercent,
  formatQuantity,
  nbsp,
} from '../../format.js';
import { Absent, ChartBox, ClassLegend, DataTable, Swatch } from '../parts.js';
import type { Section } from '../section.js';

export const rooflineSection: Section = {
  id: 'roofline',
  title: 'Roofline',
  render: ({ data }) => {
    const { roofline } = data;
    if (!roofline) {
      return (
        <Absent
          what="This machine's roofline was not measured."
          why="Without it nothing can be said about compute- or memory-bound, MFU or MBU. Measure it: inferscope roofline."
        />
      );
    }
    const points = rooflinePoints(data);
    const roofs = bandwidthRoofs(roofline);
    const own = data.stages.flatMap((stage) =>
      stage.bandwidth_bytes_per_s.value === null || stage.working_set_bytes.value === null
        ? []
        : [
            `${formatFigure(stage.bandwidth_bytes_per_s)} at the ${formatFigure(stage.working_set_bytes)} of ${stage.kind}`,
          ],
    );
    return (
      <>
        <p>
          What this machine reaches through {roofline.engine} with {formatCount(roofline.threads)}
          {nbsp}
          {roofline.threads === 1 ? 'thread' : 'threads'}, measured on {roofline.measured_at.slice(0, 10)}.
          Left of the ridge at {formatNumber(roofline.ridge_flop_per_byte)} FLOP per byte, bandwidth is the
          limit; right of it, compute. The lines are the bandwidths at the largest working set of each level;
          a stage's own roof may lie between them{own.length > 0 ? ` (${own.join(', ')})` : ''}. Diamonds are
          whole stages, triangles classes of prefill, circles classes of decode.
        </p>
        <ClassLegend
          classes={opClasses.filter((opClass) => points.some((point) => point.class === opClass))}
        />
        <ChartBox
          name="roofline"
          result={data}
          label={`Roofline, log-log: ${roofs
            .map((roof) => `${roof.level} ${formatQuantity(roof.bytes_per_s, 'B/s')}`)
            .join(', ')}, ridge at ${formatNumber(roofline.ridge_flop_per_byte)} FLOP per byte`}
        >
          <DataTable
            caption="Measured points"
            columns={[
              { head: 'stage' },
              { head: 'class' },
              { head: 'FLOP/byte', numeric: true },
              { head: 'achieved', numeric: true },
            ]}
            rows={points.map((point) => [
              point.stage,
              point.class === null ? 'whole stage' : <Swatch class={point.class} />,
              formatNumber(point.intensity),
              formatQuantity(point.flops_per_s, 'FLOP/s'),
            ])}
          />
          <DataTable
            caption="Compute roofs"
            columns={[
              { head: 'dtype' },
              { head: 'peak', numeric: true },
              { head: 'sd', numeric: true },
              { head: 'runs', numeric: true },
              { head: 'reached by' },
            ]}
            rows={roofline.compute.map((peak) => [
              peak.dtype,
              formatQuantity(peak.flops_per_s, 'FLOP/s'),
              formatPercent(peak.sd_share),
              formatCount(peak.runs),
              peak.reached_by,
            ])}
          />
          <DataTable
            caption="Read bandwidth by working-set size"
            columns={[
              { head: 'working set', numeric: true },
              { head: 'level' },
              { head: 'bandwidth', numeric: true },
              { head: 'sd', numeric: true },
              { head: 'reached by' },
            ]}
            rows={roofline.bandwidth.map((point) => [
              formatBytes(point.working_set_bytes),
              point.level,
              formatQuantity(point.bytes_per_s, 'B/s'),
              formatPercent(point.sd_share),
              point.reached_by,
            ])}
          />
        </ChartBox>
      </>
    );
  },
};
