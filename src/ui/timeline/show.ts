import { classColors, phaseColor, type Color } from '../../vocabulary/colors.js';
import { idleCauseLabel, idleCauses } from '../../vocabulary/idle-causes.js';
import { classLabel } from '../../vocabulary/op-classes.js';
import { stageLabels } from '../../vocabulary/stages.js';
import { cssColor } from '../../render/palette.js';
import type { TimelineData, TrackData } from './shown.js';
import { trackTables, type Timeline, type Track, type TrackTable } from './timeline.js';
import { trackClasses } from './tracks.js';

/**
 * What a page needs to draw a timeline, except its tiles.
 * @param known number of labels that the page has already
 */
export function showTimeline(timeline: Timeline, known: number): TimelineData {
  let lane = 0;
  const tracks = timeline.tracks.map((track) => {
    const first = lane;
    lane += track.lanes.length;
    const { table, rank, pid, tid, device, stream } = track;
    return {
      table,
      ...labelsOf(track),
      rank,
      pid,
      tid,
      device,
      stream,
      classes: [...track.classes],
      firstLane: first,
      lanes: track.lanes.length,
    };
  });
  return {
    zero: timeline.from,
    span: timeline.to - timeline.from,
    reading: timeline.reading,
    tables: [...trackTables],
    classes: Object.fromEntries(
      trackTables.map((table) => [table, trackClasses[table].map((id) => ({ id, ...lookOf(table, id) }))]),
    ),
    tracks,
    labels: timeline.labels.slice(known),
  };
}

function labelsOf({ table, tid, device, stream }: Track): Pick<TrackData, 'label' | 'short'> {
  if (table === 'gaps') return { label: `GPU ${device} idle`, short: `${device} idle` };
  if (device !== null)
    return table === 'kernels'
      ? { label: `stream ${stream}`, short: `stream ${stream}` }
      : { label: `copies, stream ${stream}`, short: `copies ${stream}` };
  const [name, short] =
    table === 'stages' ? ['stages', 'stage'] : table === 'ops' ? ['operators', 'ops'] : ['API calls', 'API'];
  return { label: `${name} · thread ${tid}`, short: `${short} ${tid}` };
}

const apiColors: Record<string, Color> = {
  launch: idleCauses['launch_overhead']!.color,
  synchronization: idleCauses['synchronization']!.color,
  copy: classColors.copy,
  allocation: classColors.quantization,
};

const apiLabels: Record<string, string> = {
  launch: 'launch call',
  synchronization: 'synchronization',
  copy: 'copy call',
  other: 'other call',
};

/** Label and color of a class, the same on all pages. */
function lookOf(table: TrackTable, id: string): { label: string; color: string } {
  if (table === 'gaps')
    return { label: idleCauseLabel(id), color: cssColor(idleCauses[id]?.color ?? 'idle') };
  if (table === 'stages')
    return { label: stageLabels[id as 'decode'] ?? id, color: cssColor(phaseColor(id as 'decode')) };
  if (table === 'api_calls') return { label: apiLabels[id] ?? id, color: cssColor(apiColors[id] ?? 'idle') };
  return { label: classLabel(id), color: classColors[id as 'gemm'] };
}
