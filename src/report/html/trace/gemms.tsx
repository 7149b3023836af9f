import type { FC } from 'hono/jsx';
import type { Document } from '../../../model/document.js';
import type { Gemm, GemmsResult } from '../../../model/documents/gemms.js';
import { formatNs } from '../../charts/trace/words.js';
import { formatCount, formatNumber, formatQuantity, noValue } from '../../format.js';
import { gemmSourceNames, leftOutText, oncePerShape, shapeWords, worthALine } from '../../gemm-rows.js';
import { missingReasons } from '../../words.js';
import { Behind, DataTable, FigureText, MissingNotes, Notices } from '../parts.js';

/** Rows shown without a click. */
const atOnce = 20;

const GemmTable: FC<{ caption: string; gemms: Gemm[] }> = ({ caption, gemms }) => (
  <DataTable
    caption={caption}
    columns={[
      { head: 'm × n × k' },
      { head: 'batch', numeric: true },
      { head: 'type' },
      { head: 'stages' },
      { head: 'calls', numeric: true },
      { head: 'time', numeric: true },
      { head: 'achieved', numeric: true },
      { head: 'of peak', numeric: true },
      { head: 'of roof', numeric: true },
      { head: 'FLOP a call', numeric: true },
      { head: 'FLOP/byte', numeric: true },
      { head: 'tile' },
      { head: 'waves', numeric: true },
      { head: 'tiles filled', numeric: true },
      { head: 'made by' },
      { head: 'source' },
      { head: 'alignment' },
    ]}
    rows={gemms.map((gemm) => {
      const [tiling] = gemm.tilings;
      return [
        `${gemm.m} × ${gemm.n} × ${gemm.k}`,
        formatCount(gemm.batch),
        gemm.dtype ?? noValue,
        gemm.stages.join(', ') || noValue,
        formatCount(gemm.calls),
        gemm.total_time_ns.value === null ? (
          <FigureText figure={gemm.total_time_ns} />
        ) : (
          formatNs(gemm.total_time_ns.value)
        ),
        <FigureText figure={gemm.achieved_flops} />,
        <FigureText figure={gemm.peak_share} utilization />,
        gemm.roof ? <FigureText figure={gemm.roof.share} utilization /> : noValue,
        formatQuantity(gemm.flop, 'FLOP'),
        <FigureText figure={gemm.arithmetic_intensity} />,
        tiling?.tile ?? noValue,
        tiling ? <FigureText figure={tiling.waves} /> : noValue,
        tiling ? <FigureText figure={tiling.tile_efficiency} /> : noValue,
        <code title={gemm.made_by.map(({ name, calls }) => `${calls} × ${name}`).join('\n')}>
          {gemm.made_by[0]?.name ?? noValue}
        </code>,
        gemmSourceNames[gemm.source],
        gemm.alignment_faults.join('; ') || 'fine',
      ];
    })}
    sortKeys={gemms.map((gemm) => [
      gemm.m * gemm.n * gemm.k,
      gemm.batch,
      gemm.dtype,
      gemm.stages.join(),
      gemm.calls,
      gemm.total_time_ns.value,
      gemm.achieved_flops.value,
      gemm.peak_share.value,
      gemm.roof?.share.value ?? null,
      gemm.flop,
      gemm.arithmetic_intensity.value,
      gemm.tilings[0]?.tile ?? null,
      gemm.tilings[0]?.waves.value ?? null,
      gemm.tilings[0]?.tile_efficiency.value ?? null,
      gemm.made_by[0]?.name ?? null,
      gemm.source,
      gemm.alignment_faults.join(),
    ])}
  />
);

/** What padding or another batch would give, by the models that the texts name. */
const WhatIfs: FC<{ gemms: Gemm[] }> = ({ gemms }) => {
  const rows = worthALine(gemms).flatMap((gemm) => (gemm.what_if ?? []).map((one) => ({ gemm, one })));
  if (rows.length === 0) return null;
  return (
    <Behind title={`What another size would give, ${formatCount(rows.length)} times`}>
      <DataTable
        caption="Models, not measurements"
        columns={[
          { head: 'm × n × k' },
          { head: 'to' },
          { head: 'time, predicted', numeric: true },
          { head: 'rate, predicted', numeric: true },
          { head: 'how' },
        ]}
        rows={rows.map(({ gemm, one }) => [
          shapeWords(gemm),
          `${one.m}×${one.n}×${one.k}`,
          one.time_ratio.value === null ? (
            <FigureText figure={one.time_ratio} />
          ) : (
            `${formatNumber(one.time_ratio.value)}×`
          ),
          one.rate_ratio.value === null ? (
            <FigureText figure={one.rate_ratio} />
          ) : (
            `${formatNumber(one.rate_ratio.value)}×`
          ),
          one.time_ratio.value === null ? one.text : `${one.text} (${one.time_ratio.source})`,
        ])}
      />
    </Behind>
  );
};

/** Matrix multiplications by shape: how often, how fast, with which tiles. */
export const GemmsSection: FC<{ gemms: Document<GemmsResult> }> = ({ gemms: { data, issues } }) => {
  const { rows: gemms, leftOut } = oncePerShape(data.gemms);
  return (
    <>
      <p>
        {formatCount(gemms.length)} shapes; m is tokens, n output features, k the inner dimension.{' '}
        {leftOutText(leftOut)}
      </p>
      <GemmTable caption="By time, then by FLOP" gemms={gemms.slice(0, atOnce)} />
      {gemms.length > atOnce && (
        <Behind title={`${formatCount(gemms.length - atOnce)} more`}>
          <GemmTable caption="Further shapes" gemms={gemms.slice(atOnce)} />
        </Behind>
      )}
      <MissingNotes
        reasons={missingReasons(
          gemms.map((gemm): [string, Gemm['peak_share']] => [
            `${gemm.m} × ${gemm.n} × ${gemm.k} of peak`,
            gemm.peak_share,
          ]),
        )}
      />
      <WhatIfs gemms={gemms} />
      <Notices issues={issues} />
    </>
  );
};
