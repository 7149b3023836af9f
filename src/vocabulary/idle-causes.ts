interface IdleCause {
  label: string;
  meaning: string;
  /** Fixed, or a name in `toneColors`. */
  color: `#${string}` | 'host' | 'host edge';
}

/** Causes of GPU idle time by waterfall bar, in its order; one hue, since they are not kernel classes. */
export const idleCauses: Readonly<Record<string, IdleCause>> = {
  host: {
    label: 'host',
    meaning: 'the launching thread was busy: Python, framework, program, loading code',
    color: 'host',
  },
  'host.start_up': {
    label: 'host startup',
    meaning: 'before the first GPU activity of this capture: imports, reading weights, building the model',
    color: 'host edge',
  },
  'host.shut_down': {
    label: 'host shutdown',
    meaning: 'after the last GPU activity of this capture',
    color: 'host edge',
  },
  launch_overhead: {
    label: 'launch call',
    meaning: 'inside the launching API call',
    color: '#c2480a',
  },
  synchronization: {
    label: 'synchronization',
    meaning: 'the launching thread waited for the GPU, or in a blocking copy or allocation',
    color: '#ec7f2c',
  },
  launch_latency: {
    label: 'launch latency',
    meaning: "from the return of the launch to the start on the GPU, up to this GPU's usual latency",
    color: '#fbb679',
  },
  device_dependency: {
    label: 'device dependency',
    meaning: 'work was queued and the GPU did not start it: dependencies between streams or graph nodes',
    color: '#fcd6b4',
  },
  unattributed: {
    label: 'not explained',
    meaning: 'the launch that ended the gap was not recorded',
    color: '#9aa3b2',
  },
};

export const idleCauseLabel = (id: string): string => idleCauses[id]?.label ?? id.replaceAll('_', ' ');
