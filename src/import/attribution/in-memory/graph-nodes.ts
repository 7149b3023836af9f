import { isGraphLaunch, nodeWithoutId } from '../impossible.js';
import { sharedInts } from './shared-arrays.js';
import type { InMemoryEvents } from './events.js';

/**
 * Like joinLaunches: activities launched by calls for CUDA graphs are nodes of a graph, even if the profiler recorded
 * no node id.
 * @param call row of the call that launched each; −1: none
 * @returns the same events if there are none
 */
export function withGraphNodes(
  { events, call }: { events: InMemoryEvents; call: Int32Array },
  calls: InMemoryEvents,
  names: readonly string[],
): { events: InMemoryEvents; call: Int32Array } {
  const { rows, shape, shapes } = events;
  const launchesGraph = Uint8Array.from(calls.shapes['name'] ?? [], (name) =>
    Number(isGraphLaunch(names[name] ?? '')),
  );
  const nodes = shapes['graph_node'];
  if (!nodes || !launchesGraph.includes(1)) return { events, call };
  const withoutId = Uint8Array.from(nodes, (node, code) =>
    Number(Number.isNaN(node) && shapes['opaque_graph']?.[code] !== 1),
  );
  const nodeCodes = new Map<number, number>();
  const newShape = sharedInts(rows);
  newShape.set(shape.subarray(0, rows));
  for (let i = 0; i < rows; i++) {
    const code = shape[i]!;
    const callRow = call[i]!;
    if (callRow < 0 || withoutId[code] === 0 || launchesGraph[calls.shape[callRow]!] === 0) continue;
    if (!nodeCodes.has(code)) nodeCodes.set(code, nodes.length + nodeCodes.size);
    newShape[i] = nodeCodes.get(code)!;
  }
  if (nodeCodes.size === 0) return { events, call };
  const codes = [...nodeCodes.keys()];
  const extended = Object.entries(shapes).map(([name, values]) => {
    const column = new Float64Array(values.length + codes.length);
    column.set(values);
    for (const [i, code] of codes.entries())
      column[values.length + i] = name === 'graph_node' ? nodeWithoutId : values[code]!;
    return [name, column] as const;
  });
  return { events: { ...events, shape: newShape, shapes: Object.fromEntries(extended) }, call };
}
