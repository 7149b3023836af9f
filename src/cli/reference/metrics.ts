import { describeBar } from '../../facts/waterfall/words.js';
import { baselineColumns } from '../../model/documents/baseline-metrics.js';
import { type BarHead, barHeads } from '../../model/bars.js';
import { throttleReasons } from '../../model/throttle-reasons.js';
import { withheldReasons } from '../../model/withheld.js';
import { barMeanings } from '../../vocabulary/bars.js';
import * as bench from '../../vocabulary/bench.js';
import { changeOutcomeMeanings, changeOutcomes } from '../../vocabulary/change-outcomes.js';
import { idleCauses } from '../../vocabulary/idle-causes.js';
import * as kernelCases from '../../vocabulary/kernel-cases.js';
import * as loads from '../../vocabulary/loads.js';
import { componentLabels, componentMeanings } from '../../vocabulary/memory-components.js';
import { pointLabels, pointMeanings } from '../../vocabulary/memory-points.js';
import { classLabels, classMeanings } from '../../vocabulary/op-classes.js';
import { sampledMetrics } from '../../vocabulary/sampled-metrics.js';
import { stageLabels, stageMeanings } from '../../vocabulary/stages.js';
import { subjectWords } from '../../vocabulary/subjects.js';
import * as sweep from '../../vocabulary/sweep.js';
import { verdictLabels, verdictMeanings } from '../../vocabulary/verdicts.js';
import { code, type Page, page, table } from './markdown.js';

type Texts = Readonly<Record<string, string>>;

/** One row per id that has a meaning. */
const labeledTable = (labels: Readonly<Partial<Record<string, string>>>, meanings: Texts): string =>
  table(
    ['id', 'label', 'meaning'],
    Object.entries(meanings).map(([id, meaning]) => [code(id), labels[id] ?? id, meaning]),
  );

/** A placeholder in the table for all second parts of an id. */
const exampleTail: Partial<Record<BarHead, string>> = {
  kernels: '.gemm',
  inefficiency: '.gemm',
  nonessential: '.elementwise',
  exposed_copy: '.htod_pageable',
  host: '.program',
};

function barTable(): string {
  const rows = barHeads.map((head) => {
    const id = `${head}${exampleTail[head] ?? ''}`;
    const { label, confidence } = describeBar(id, { peaksMeasured: true });
    return [code(id), label, 'ms', confidence, barMeanings[head]];
  });
  return table(['id', 'label', 'unit', 'confidence', 'meaning'], rows);
}

export const metricsPage = (): Page =>
  page(
    'metrics.md',
    'Ids, metrics and statuses',
    'Ids are stable and the same in documents, tables and SQL; labels are shown to people. How figures are computed is in [figures](../concepts/figures.md).',
    '## Waterfall bars',
    'Bars sum to the measured time of a stage, from the roofline to profiler overhead. An id may have a second part: a class, a direction, or a host activity.',
    barTable(),
    '## Causes of idle time',
    table(
      ['id', 'label', 'meaning'],
      Object.entries(idleCauses).map(([id, { label, meaning }]) => [code(id), label, meaning]),
    ),
    '## Stages',
    labeledTable(stageLabels, stageMeanings),
    '## Classes of kernels and operators',
    labeledTable(classLabels, classMeanings),
    '## Latencies and rates',
    'Latencies are in ms.',
    labeledTable(
      { ...loads.latencyLabels, ...loads.rateLabels },
      {
        ...loads.latencyMeanings,
        ...loads.rateMeanings,
      },
    ),
    '## Columns of a benchmark',
    'Columns of `baseline_metrics.json` and the CSV files; units are in the names.',
    table(
      ['id', 'meaning'],
      Object.entries(baselineColumns).map(([id, meaning]) => [code(id), meaning]),
    ),
    '## Sampled metrics',
    table(
      ['id', 'label', 'unit'],
      sampledMetrics.map(({ id, label, unit }) => [code(id), label, unit]),
    ),
    '## Memory',
    'Points of a memory profile, then components of its peak.',
    labeledTable(pointLabels, pointMeanings),
    labeledTable(componentLabels, componentMeanings),
    '## Contents of a session',
    table(
      ['subject', 'label', 'created by'],
      Object.entries(subjectWords).map(([id, { label, command }]) => [code(id), label, code(command)]),
    ),
    '## Statuses',
    'Points of a benchmark:',
    labeledTable(bench.pointOutcomeLabels, bench.pointOutcomeMeanings),
    'Runs of a sweep:',
    labeledTable(sweep.runOutcomeLabels, sweep.runOutcomeMeanings),
    'Cases of `kernels`:',
    labeledTable(kernelCases.caseOutcomeLabels, kernelCases.caseOutcomeMeanings),
    'Findings after a change (`explain --verify`):',
    labeledTable(changeOutcomes, changeOutcomeMeanings),
    'Verdicts of `bench compare` and `baseline check`:',
    labeledTable(verdictLabels, verdictMeanings),
    '## Reasons',
    'A missing figure states its reason as `{"code", "text"}`; the text is specific to the session. Figures that are computed but withheld have one of these:',
    table(
      ['code', 'meaning'],
      Object.values(withheldReasons).map(({ code: id, text }) => [code(id), text]),
    ),
    "Bits of `throttle_bits`, with NVML's names:",
    table(
      ['bit', 'id', 'label', 'lowers clocks'],
      throttleReasons.map(({ bit, name, label, limits }) => [
        code(`0x${bit.toString(16)}`),
        code(name),
        label,
        limits ? 'yes' : 'no',
      ]),
    ),
  );
