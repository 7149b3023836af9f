import { phaseName } from '../../charts/trace/words.js';
import { formatCount, formatNumber, formatQuantity, isAccountingFault, noValue } from '../../format.js';
import { stageTexts, utilizationShare } from '../../utilization-share.js';
import { missingReasons } from '../../words.js';
import type { UtilizationStage } from '../../../model/documents/utilization.js';
import type { Figure } from '../../../model/figure.js';
import { Absent, Behind, DataTable, FigureText, Missing, MissingNotes } from '../parts.js';
import type { TraceSection } from './inputs.js';

const Share = ({ figure }: { figure: Figure }) =>
  figure.value === null ? (
    <Missing reason={figure.reason.text} />
  ) : (
    <span class="figure" title={figure.source}>
      {utilizationShare(figure)}
      {isAccountingFault(figure) && <span class="fault"> accounting fault</span>}
    </span>
  );

const named = (stage: UtilizationStage): string =>
  stage.batch_size === null
    ? phaseName(stage.kind)
    : `${phaseName(stage.kind)}, batch ${formatCount(stage.batch_size)}`;

const shown = ['mfu', 'mbu', 'roof_share'] as const;

/** MFU and MBU of each stage, every input beside them. */
export const utilizationSection: TraceSection = {
  id: 'utilization',
  title: 'MFU and MBU',
  applies: ({ data }) => Boolean(data.utilization),
  render: ({ data }) => {
    const { utilization } = data;
    if (!utilization?.model) {
      return (
        <Absent
          what="No utilisation is known."
          why="The session does not say which model it ran: inferscope import --model, or inferscope session utilization --model, names it."
        />
      );
    }
    const { model, device, stages } = utilization;
    const texts = stageTexts(stages, named);
    // Without shapes of products two columns of dashes would push the last ones out of sight; the notes say why.
    const executed = stages.some(
      (stage) => stage.executed.mfu.value !== null || stage.executed.over_necessary.value !== null,
    );
    return (
      <>
        <p>
          {model.name} in {model.dtype} ({model.from}) on {device.name ?? 'an unknown device'}
          {device.devices > 1 && ` × ${device.devices}`}. MFU = FLOPs / time / peak, MBU = bytes / time /
          bandwidth, of the work the model needs; refined MFU is of the matrix products that ran.
        </p>
        <DataTable
          caption="A mean step"
          columns={[
            { head: 'stage' },
            { head: 'n', numeric: true },
            { head: 'time', numeric: true },
            { head: 'tok/s', numeric: true },
            { head: 'FLOPs', numeric: true },
            { head: 'bytes', numeric: true },
            { head: 'MFU', numeric: true },
            ...(executed
              ? [
                  { head: 'refined', numeric: true },
                  { head: 'executed / necessary', numeric: true },
                ]
              : []),
            { head: 'MBU', numeric: true },
            { head: 'of the measured roof', numeric: true },
            { head: 'bound' },
          ]}
          rows={stages.map((stage) => [
            named(stage),
            formatCount(stage.steps),
            <FigureText figure={stage.time_ms} />,
            stage.tokens_per_s.value === null ? noValue : formatNumber(stage.tokens_per_s.value),
            <FigureText figure={stage.flops} />,
            <FigureText figure={stage.bytes} />,
            <Share figure={stage.mfu} />,
            ...(executed
              ? [
                  <Share figure={stage.executed.mfu} />,
                  stage.executed.over_necessary.value === null ? (
                    <Missing reason={stage.executed.over_necessary.reason.text} />
                  ) : (
                    `${formatNumber(stage.executed.over_necessary.value)}×`
                  ),
                ]
              : []),
            <Share figure={stage.mbu} />,
            <Share figure={stage.roof_share} />,
            stage.bound ?? noValue,
          ])}
        />
        {texts.length > 0 && (
          <ul class="notes">
            {texts.map((text) => (
              <li>{text}</li>
            ))}
          </ul>
        )}
        <MissingNotes
          reasons={missingReasons(
            stages.flatMap((stage) => [
              ...shown.map((name): [string, Figure] => [
                `${named(stage)} ${name === 'roof_share' ? 'of the measured roof' : name.toUpperCase()}`,
                stage[name],
              ]),
              ...(executed ? [] : [[`${named(stage)} refined MFU`, stage.executed.mfu] as [string, Figure]]),
            ]),
          )}
        />
        <Behind title="Inputs of the formulas">
          <DataTable
            caption="Whose word each figure is"
            columns={[
              { head: 'stage' },
              { head: 'input' },
              { head: 'value', numeric: true },
              { head: 'from' },
            ]}
            rows={stages.flatMap((stage) =>
              (
                [
                  ['time', stage.time_ms],
                  ['FLOPs', stage.flops],
                  ['bytes', stage.bytes],
                  ['peak', stage.peak_flops_per_s],
                  ['bandwidth', stage.peak_bandwidth_bytes_per_s],
                ] as [string, Figure][]
              ).map(([name, figure]) => [
                named(stage),
                name,
                <FigureText figure={figure} />,
                figure.value === null ? figure.reason.text : figure.source,
              ]),
            )}
          />
          {stages
            .filter(({ work }) => work.length > 0)
            .map((stage) => (
              <DataTable
                caption={`Operations of ${named(stage)}, a mean step; sizes from ${stage.sizes_from}`}
                columns={[
                  { head: 'operation' },
                  { head: 'times', numeric: true },
                  { head: 'in' },
                  { head: 'FLOPs', numeric: true },
                  { head: 'bytes', numeric: true },
                ]}
                rows={stage.work.map((op) => [
                  op.name,
                  formatCount(op.ops),
                  op.dtype,
                  formatQuantity(op.flops, 'FLOP'),
                  formatQuantity(op.bytes, 'B'),
                ])}
              />
            ))}
        </Behind>
      </>
    );
  },
};
