import type { FC } from 'hono/jsx';
import type { KernelStep, KernelsResult } from '../../../model/documents/kernels.js';
import { formatCount, formatPercent, formatQuantity, noValue } from '../../format.js';
import { stepLabel } from '../../kernel-words.js';
import type { PageSection } from '../document-page.js';
import { Behind, DataTable, FigureText } from '../parts.js';

const ns = (value: number | null): string => (value === null ? noValue : formatQuantity(value, 'ns'));

const Operations: FC<{ step: KernelStep }> = ({ step }) => {
  const whole = step.measured_ns.value;
  return (
    <DataTable
      caption={`Operations of ${stepLabel(step)}`}
      columns={[
        { head: 'operation' },
        { head: 'times', numeric: true },
        { head: 'each', numeric: true },
        { head: 'together', numeric: true },
        { head: 'share', numeric: true },
        { head: 'roof', numeric: true },
        { head: 'of roof', numeric: true },
        { head: 'measured as', wraps: true },
      ]}
      rows={step.ops.map(({ name, count, total_ns: total, roof_ns: roof, case: id, reason }) => [
        name,
        formatCount(count),
        ns(total === null ? null : total / count),
        ns(total),
        total === null || whole === null ? noValue : formatPercent(total / whole),
        ns(roof),
        total === null || roof === null ? noValue : formatPercent(roof / total),
        reason === null ? id : `not measured: ${reason}`,
      ])}
    />
  );
};

/** What the operations of a model's steps add up to. */
export const stepsSection: PageSection<KernelsResult> = {
  id: 'steps',
  title: 'Steps of the model',
  applies: ({ data }) => data.steps.length > 0,
  render: ({ data: { steps, model } }) => (
    <>
      <p>
        Each operation of {model?.name} was measured once, as the framework runs it, and counted as often as a
        step has it: one after another, without host, launches between them, or overlap.
      </p>
      <DataTable
        caption="Steps"
        columns={[
          { head: 'step' },
          { head: 'measured', numeric: true },
          { head: 'roof', numeric: true },
          { head: 'of roof', numeric: true },
          { head: 'operations', numeric: true },
          { head: 'not measured', numeric: true },
        ]}
        rows={steps.map((step) => [
          stepLabel(step),
          <FigureText figure={step.measured_ns} />,
          <FigureText figure={step.roof_ns} />,
          step.measured_ns.value === null || step.roof_ns.value === null
            ? noValue
            : formatPercent(step.roof_ns.value / step.measured_ns.value),
          formatCount(step.measured_ops),
          formatCount(step.missing_ops),
        ])}
      />
      {steps.map((step) => (
        <Behind title={`Operations of ${stepLabel(step)}`}>
          <Operations step={step} />
        </Behind>
      ))}
    </>
  ),
};
