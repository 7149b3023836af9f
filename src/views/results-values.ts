import type { StatisticId } from '../model/result-statistics.js';
import type { Column } from './block.js';

/** Statistics in display order, with their `drop` order. */
export const statistics: readonly (Pick<Column, 'head' | 'drop' | 'detail'> & { id: StatisticId })[] = [
  { id: 'mean', head: 'mean' },
  { id: 'sd', head: 'sd', drop: 5 },
  { id: 'min', head: 'min', drop: 4, detail: true },
  { id: 'p50', head: 'median' },
  { id: 'p90', head: 'p90', drop: 6, detail: true },
  { id: 'p95', head: 'p95', drop: 7, detail: true },
  { id: 'p99', head: 'p99' },
  { id: 'max', head: 'max', drop: 8 },
];
