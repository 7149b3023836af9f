import type { KernelsResult } from '../../../model/documents/kernels.js';
import type { PageSection } from '../document-page.js';
import { DataTable } from '../parts.js';

const definitions: [term: string, meaning: string][] = [
  [
    'median',
    'Of the runs of one process, of one operation; rates are of it. Percentiles are linear (type 7).',
  ],
  [
    '± (95 %)',
    'Half of the interval of the mean, over the runs of one process, as a share of it: how steady this process was.',
  ],
  ['bytes', 'Every input read once and every output written once: what no implementation can do without.'],
  [
    'FLOPs',
    'Of kernels with matrix products these alone, 2 a multiply-add; of the others every addition, multiplication, division, comparison, exponential and root.',
  ],
  [
    'roof',
    'max(FLOPs / peak, bytes / bandwidth); of kernels without matrix products bytes / bandwidth. The peaks are those that inferscope roofline measured on this machine, the data sheet’s where it has not.',
  ],
  [
    'bound',
    'Which of the two is longer; latency: the roof allows less time than one launch (or node of a CUDA graph) takes.',
  ],
  [
    'timed by',
    'events: between two events of the device around runs. graph: replays of a CUDA graph of many operations; on a CPU copies of the operation in one graph. host: a clock of the CPU.',
  ],
  ['error', 'Against the same operation in float64: largest difference over the largest magnitude.'],
  ['memory', 'Most that the framework’s allocator held during the case.'],
];

export const definitionsSection: PageSection<KernelsResult> = {
  id: 'definitions',
  title: 'Definitions',
  render: () => (
    <DataTable
      caption="What the words mean"
      columns={[{ head: 'word' }, { head: 'meaning', wraps: true }]}
      rows={definitions}
    />
  ),
};
