import type { MissingFigure } from '../../model/figure.js';
import type { ExecutedGemms } from './executed.js';
import type { SessionModel } from './model.js';
import type { UtilizationRoofs } from './roofs.js';
import type { SizedStep } from './sizes.js';

export interface StageContext {
  executionId: string;
  timeFrom: string;
  profiled: boolean;
  traced: readonly SizedStep[];
  executed: Map<number, ExecutedGemms> | null;
  model: SessionModel | MissingFigure;
  roofs: UtilizationRoofs;
}
