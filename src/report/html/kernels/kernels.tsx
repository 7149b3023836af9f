import type { FC, PropsWithChildren } from 'hono/jsx';
import type { OpClass } from '../../../model/classes.js';
import type { Document } from '../../../model/document.js';
import type { KernelsResult } from '../../../model/documents/kernels.js';
import type { Chart } from '../../charts/chart.js';
import { cellsOf } from '../../charts/kernels/map.js';
import { placed } from '../../charts/kernels/roofline.js';
import { type KernelChartName, kernelCharts } from '../../charts/registry.js';
import { formatNumber, formatPercent, formatQuantity, noValue } from '../../format.js';
import { caseLabel, deviceWords, protocolWords, roofWords } from '../../kernel-words.js';
import { collapsed } from '../../notices.js';
import { documentPage, type PageSection } from '../document-page.js';
import { ChartFrame, ClassLegend, DataTable, FigureText, Notices } from '../parts.js';
import { CaseTable } from './cases.js';
import { definitionsSection } from './definitions.js';
import { stepsSection } from './steps.js';

interface ChartProps {
  name: KernelChartName;
  result: KernelsResult;
  part?: string;
  label: string;
}

const KernelChart: FC<PropsWithChildren<ChartProps>> = ({ name, result, part = '', label, children }) => {
  const chart: Chart<KernelsResult> = kernelCharts[name];
  return (
    <ChartFrame name={name} part={part} label={label} height={chart.height(result, part)} zooms={false}>
      {children}
    </ChartFrame>
  );
};

const Summary: FC<{ document: Document<KernelsResult> }> = ({ document: { data, issues } }) => {
  const { session, cases } = data;
  const shares = cases.flatMap((one) =>
    one.roof_share.value === null ? [] : [{ one, share: one.roof_share.value }],
  );
  const sorted = shares.toSorted((a, b) => b.share - a.share);
  const words = ({ one, share }: (typeof sorted)[number]) =>
    `${caseLabel(one, false)} ${formatPercent(share)}`;
  const [best, worst] = [sorted[0], sorted.at(-1)];
  return (
    <header id="summary">
      <p class="kicker">
        inferscope kernels · {session.id} · {session.started_at.slice(0, 16).replace('T', ' ')} UTC
      </p>
      <h1>{session.title}</h1>
      <dl class="lead">
        <div>
          <dt>Measured</dt>
          <dd>
            {deviceWords(data)}: {protocolWords(data)}.
          </dd>
        </div>
        <div>
          <dt>Roofs</dt>
          <dd>{roofWords(data)}</dd>
        </div>
        {best && worst && best !== worst && (
          <div>
            <dt>Shares</dt>
            <dd>
              Closest to its roof: {words(best)}. Furthest: {words(worst)}.
            </dd>
          </div>
        )}
      </dl>
      <Notices issues={collapsed(issues)} />
    </header>
  );
};

const rooflineSection: PageSection<KernelsResult> = {
  id: 'roofline',
  title: 'Roofline',
  applies: ({ data }) => placed(data).length > 0,
  render: ({ data }) => {
    const points = placed(data);
    const classes = [...new Set(points.map((one): OpClass => one.class))];
    return (
      <>
        <ClassLegend classes={classes} />
        <KernelChart
          name="kernel_roofline"
          result={data}
          label="Achieved FLOP/s of each operation against its arithmetic intensity, below the roofs"
        >
          <DataTable
            caption="Operations on the roofline"
            columns={[
              { head: 'operation' },
              { head: 'FLOP/byte', numeric: true },
              { head: 'achieved', numeric: true },
              { head: 'of roof', numeric: true },
              { head: 'bound' },
            ]}
            rows={points.map((one) => [
              caseLabel(one, true),
              formatNumber(one.intensity!),
              formatQuantity(one.flops_per_s!, 'FLOP/s'),
              <FigureText figure={one.roof_share} />,
              one.bound ?? noValue,
            ])}
          />
        </KernelChart>
      </>
    );
  },
};

const mapsSection: PageSection<KernelsResult> = {
  id: 'sweeps',
  title: 'Sweeps',
  applies: ({ data }) => data.maps.length > 0,
  render: ({ data }) =>
    data.maps.map((map, index) => {
      const cells = cellsOf(data, map);
      const name = `${map.series}${map.fixed === '' ? '' : `, ${map.fixed}`}`;
      return (
        <>
          <h3>{name}</h3>
          <KernelChart
            name="kernel_map"
            result={data}
            part={String(index)}
            label={`Median time of ${name} over ${map.x.name} and ${map.y.name}; darker is closer to the roof`}
          >
            <DataTable
              caption={`Median of ${name}: ${map.y.name} down, ${map.x.name} across`}
              columns={[{ head: map.y.name }, ...map.x.values.map((head) => ({ head, numeric: true }))]}
              rows={map.y.values.map((value, y) => [
                value,
                ...map.x.values.map((_, x) => {
                  const found = cells.find((cell) => cell.x === x && cell.y === y)?.one;
                  if (!found) return noValue;
                  return found.median_ns === null
                    ? found.outcome.replaceAll('_', ' ')
                    : formatQuantity(found.median_ns, 'ns');
                }),
              ])}
            />
          </KernelChart>
        </>
      );
    }),
};

const casesSection: PageSection<KernelsResult> = {
  id: 'cases',
  title: 'Operations',
  render: ({ data }) => <CaseTable cases={data.cases} />,
};

/**
 * The HTML report of a kernels session: one page without any remote asset.
 * @param clientScript text of dist/report-client.js, which draws the charts
 */
export function kernelsReport(
  document: Document<KernelsResult>,
  { clientScript }: { clientScript: string },
): string {
  const { session } = document.data;
  return documentPage({
    title: session.title,
    document,
    session,
    summary: <Summary document={document} />,
    sections: [stepsSection, rooflineSection, mapsSection, casesSection, definitionsSection],
    clientScript,
  });
}
