import { isCopyBar } from '../../model/bars.js';
import type { OpClass } from '../../model/classes.js';
import { slowdown } from '../../model/headline-time.js';
import type { CopyNeed } from './group-needs.js';
import type { NecessaryTime } from './necessary.js';

/** Measured parts of one instance's time, or of a mean instance's, ms. */
export interface MeasuredTime {
  wallMs: number;
  /** Exclusive time of compute kernels by class, without communication. */
  classes: Map<OpClass, number>;
  communicationMs: number;
  copies: Map<string, number>;
  idle: Idle;
}

interface Idle {
  synchronization: number;
  host: Map<string, number>;
  launch_overhead: number;
  launch_latency: number;
  device_dependency: number;
  /** Gaps before work with an unknown launch. */
  unattributed: number;
}

const sum = (values: Iterable<number>): number => [...values].reduce((total, value) => total + value, 0);

/** Lengthens the measured parts if the clean execution was slower (`slowdown`), else returns them unchanged. */
export function scaleToClean(measured: MeasuredTime, cleanMs: number | null): MeasuredTime {
  const { classes, communicationMs, copies, idle, wallMs } = measured;
  const busyMs = sum(classes.values()) + communicationMs + sum(copies.values());
  const factors = slowdown({ busy: busyMs, idle: wallMs - busyMs }, cleanMs);
  if (factors.busy === 1 && factors.idle === 1) return measured;
  const scaleValues = <K>(values: Map<K, number>, factor: number) =>
    new Map([...values].map(([key, ms]) => [key, factor * ms]));
  return {
    wallMs: factors.busy * busyMs + factors.idle * (wallMs - busyMs),
    classes: scaleValues(classes, factors.busy),
    communicationMs: factors.busy * communicationMs,
    copies: scaleValues(copies, factors.busy),
    idle: {
      synchronization: factors.idle * idle.synchronization,
      host: scaleValues(idle.host, factors.idle),
      launch_overhead: factors.idle * idle.launch_overhead,
      launch_latency: factors.idle * idle.launch_latency,
      device_dependency: factors.idle * idle.device_dependency,
      unattributed: factors.idle * idle.unattributed,
    },
  };
}

/** Relative rounding error of a sum of many doubles. */
const maxRoundingShare = 1e-9;

export interface Part {
  id: string;
  ms: number;
}

/** Kernel time of a class, and its necessary time; null if unknown. */
interface ClassTime {
  class: string;
  ms: number;
  necessaryMs: number | null;
}

/** roofline, serial, inefficiency.<class> and nonessential.<class>, which sum to the kernel time. */
function kernelParts(rooflineMs: number, classes: readonly ClassTime[]): Part[] {
  const serialMs = classes.reduce((sum, { necessaryMs }) => sum + (necessaryMs ?? 0), 0);
  return [
    { id: 'roofline', ms: rooflineMs },
    { id: 'serial', ms: serialMs - rooflineMs },
    ...classes.map((row) => ({
      id: `${row.necessaryMs === null ? 'nonessential' : 'inefficiency'}.${row.class}`,
      ms: row.ms - (row.necessaryMs ?? 0),
    })),
  ];
}

/**
 * The bars of the measured time. Without necessary times kernels are `kernels.<class>`, as measured. If copies are the
 * necessary work, the roofline is subtracted from them. The remainder goes to `unattributed`: gaps before work with an
 * unknown launch, and activities that the edges of the stage cut.
 */
export function splitOf(measured: MeasuredTime, necessary: NecessaryTime | CopyNeed | null): Part[] {
  const { wallMs, classes, communicationMs, copies, idle } = measured;
  const splitByClass = necessary !== null && 'byClass' in necessary;
  const parts: Part[] = [
    ...(necessary && !splitByClass ? [{ id: 'roofline', ms: necessary.rooflineMs }] : []),
    ...(splitByClass
      ? kernelParts(necessary.rooflineMs, classTimes(classes, necessary.byClass))
      : [...classes].map(([name, ms]) => ({ id: `kernels.${name}`, ms }))),
    { id: 'exposed_comm', ms: communicationMs },
    ...copyParts(copies, splitByClass ? 0 : (necessary?.rooflineMs ?? 0)),
    { id: 'launch_latency', ms: idle.launch_latency },
    { id: 'launch_overhead', ms: idle.launch_overhead },
    { id: 'synchronization', ms: idle.synchronization },
    { id: 'device_dependency', ms: idle.device_dependency },
    ...[...idle.host].map(([cause, ms]) => ({ id: `host.${cause}`, ms })),
  ];
  const sumMs = parts.reduce((sum, { ms }) => sum + ms, 0);
  const restMs = wallMs - sumMs;
  return [...parts, { id: 'unattributed', ms: Math.abs(restMs) < maxRoundingShare * wallMs ? 0 : restMs }];
}

/** Copies of each kind. The necessary time of the link is subtracted from those from the host, in proportion. */
function copyParts(copies: ReadonlyMap<string, number>, neededMs: number): Part[] {
  const parts = [...copies].map(([kind, ms]) => ({ id: `exposed_copy.${kind}`, ms }));
  if (neededMs === 0) return parts;
  const fromHost = parts.filter(({ id }) => isCopyBar(id, 'htod'));
  const sum = fromHost.reduce((total, { ms }) => total + ms, 0);
  if (sum <= 0) {
    return [
      ...parts.filter((copyPart) => !fromHost.includes(copyPart)),
      { id: 'exposed_copy.htod', ms: -neededMs },
    ];
  }
  return parts.map(({ id, ms }) => ({
    id,
    ms: isCopyBar(id, 'htod') ? ms - (neededMs * ms) / sum : ms,
  }));
}

/**
 * Classes with their necessary time. A whole CUDA graph is one row of class `graph`. A class that recorded less kernel
 * time than is necessary ran inside the graph, so the graph carries its necessary time and its recorded kernel time.
 */
function classTimes(classes: Map<OpClass, number>, byClass: Map<OpClass, number>): ClassTime[] {
  const needed = new Map(byClass);
  // Sampling is necessary if it ran on the device. A forward pass does not include it.
  if (!classes.has('sampling')) needed.delete('sampling');
  const rows = [...new Set([...needed.keys(), ...classes.keys()])].map((name): ClassTime => ({
    class: name,
    ms: classes.get(name) ?? 0,
    necessaryMs: needed.get(name) ?? null,
  }));
  const graph = rows.find((row) => row.class === 'graph');
  if (!graph) return rows;
  const inside = rows.filter((row) => row.necessaryMs !== null && row.ms < row.necessaryMs);
  for (const row of inside) {
    graph.ms += row.ms;
    graph.necessaryMs = (graph.necessaryMs ?? 0) + row.necessaryMs!;
  }
  return rows.filter((row) => !inside.includes(row));
}
