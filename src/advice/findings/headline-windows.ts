import type { StageWaterfall, WaterfallKind } from '../../model/documents/explain.js';
import { headlineTime } from '../../model/headline-time.js';

/** Mean window of a kind of stage, ms: the base of shares if the kind has no waterfall. */
interface Window {
  kind: WaterfallKind;
  wall_ms: number;
}

/** The windows with the headline time of their stage instead of their own. */
export const withHeadlineTime = <W extends Window>(
  waterfalls: readonly StageWaterfall[],
  windows: readonly W[],
): W[] =>
  windows.map((window) => {
    const stageWaterfall = waterfalls.find(({ kind, name }) => kind === window.kind && name === null);
    return { ...window, wall_ms: (stageWaterfall && headlineTime(stageWaterfall).value) ?? window.wall_ms };
  });
