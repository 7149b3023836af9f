import type { Breakdown, ClassRow, StageResult } from '../model/documents/profile.js';
import { figure } from '../model/figure.js';
import {
  bandwidth,
  layers,
  peakFlops,
  repeats,
  steps,
  sum,
  templates,
  type Template,
} from './test-operators.js';

function workOf(members: Template[], prefill: boolean): { flops: number; bytes: number; ms: number } {
  const tokens = prefill ? 128 : 1;
  const each = members.map((template) => ({
    flops: template.mflop * 1e6 * (template.name.startsWith('/lm_head') ? 1 : tokens),
    bytes: template.kb * 1e3 * (prefill ? 1.3 : 1),
  }));
  return {
    flops: sum(each.map(({ flops }) => flops)),
    bytes: sum(each.map(({ bytes }) => bytes)),
    ms: 1e3 * sum(each.map(({ flops, bytes }) => Math.max(flops / peakFlops, bytes / bandwidth))),
  };
}

function breakdown(kind: 'prefill' | 'decode'): Breakdown {
  const prefill = kind === 'prefill';
  const msOf = (template: Template): number => (prefill ? template.prefill_us : template.decode_us) / 1e3;
  const operators_ms = sum(templates.map(msOf));
  const gaps_between_operators_ms = templates.length * (prefill ? 0.0021 : 0.0011);
  const gaps_at_edges_ms = prefill ? 0.31 : 0.082;
  const remainder_ms = 0;
  const stage_ms = operators_ms + gaps_between_operators_ms + gaps_at_edges_ms + remainder_ms;
  const classes = [...new Set(templates.map((template) => template.class))];
  const by_class = classes
    .map((opClass): ClassRow => {
      const members = templates.filter((template) => template.class === opClass);
      const ms = sum(members.map(msOf));
      const work = workOf(members, prefill);
      const necessary = work.bytes > 0;
      const intensity = necessary && work.flops > 0 ? work.flops / work.bytes : null;
      return {
        class: opClass,
        calls: members.length,
        ms,
        share: ms / stage_ms,
        necessary_flops: necessary ? work.flops : null,
        necessary_bytes: necessary ? work.bytes : null,
        necessary_ms: necessary ? work.ms : null,
        intensity_flop_per_byte: intensity,
        achieved_flops_per_s: necessary ? work.flops / (ms / 1e3) : null,
        achieved_bytes_per_s: necessary ? work.bytes / (ms / 1e3) : null,
        bound: intensity === null ? null : intensity > peakFlops / bandwidth ? 'compute' : 'memory',
      };
    })
    .toSorted((a, b) => b.ms - a.ms);
  const by_layer = [...Array.from({ length: layers }, (_, layer) => layer), null].map((layer) => {
    const members = templates.filter((template) => template.layer === layer);
    return {
      layer,
      ms: sum(members.map(msOf)),
      by_class: classes
        .map((opClass) => ({
          class: opClass,
          ms: sum(members.filter((template) => template.class === opClass).map(msOf)),
        }))
        .filter(({ ms }) => ms > 0),
    };
  });
  const top_operators = templates
    .toSorted((a, b) => msOf(b) - msOf(a))
    .slice(0, 20)
    .map((template) => ({
      name: template.name,
      op_type: template.op_type,
      class: template.class,
      layer: template.layer,
      calls: 1,
      ms: msOf(template),
      share: msOf(template) / stage_ms,
      input_shapes: prefill ? '[[1,128,512],[512,1408]]' : '[[1,1,512],[512,1408]]',
    }));
  return {
    instances: prefill ? 3 : 3 * steps,
    stage_ms,
    operators_ms,
    gaps_between_operators_ms,
    gaps_at_edges_ms,
    remainder_ms,
    by_class,
    by_layer,
    top_operators,
  };
}

/** One stage; its operators and gaps sum to its profiled time. */
export function stage(kind: 'prefill' | 'decode', overheadMs: number): StageResult {
  const prefill = kind === 'prefill';
  const parts = breakdown(kind);
  const work = workOf(templates, prefill);
  const clean = parts.stage_ms - overheadMs;
  const tokens = prefill ? 128 : 1;
  const rooflineMs = 1e3 * Math.max(work.flops / peakFlops, work.bytes / bandwidth);
  return {
    kind,
    instances: prefill ? repeats : repeats * steps,
    duration_ms: figure(clean, 'ms', 'stages of the clean execution', {
      n: repeats,
      sd: clean * 0.012,
      ci95: [clean * 0.993, clean * 1.007],
    }),
    tokens_per_s: figure((tokens / clean) * 1e3, 'tok/s', 'new tokens / duration'),
    profiled_ms: figure(parts.stage_ms, 'ms', 'stages of the profiled execution'),
    profiler_overhead_ms: figure(overheadMs, 'ms', 'profiled − clean'),
    flops: figure(work.flops, 'FLOP', 'model arithmetic'),
    bytes: figure(work.bytes, 'B', 'model arithmetic'),
    intensity_flop_per_byte: figure(work.flops / work.bytes, 'FLOP/byte', 'flops / bytes'),
    working_set_bytes: figure(work.bytes, 'B', 'weights + KV cache'),
    bandwidth_bytes_per_s: figure(bandwidth, 'B/s', 'measured read bandwidth at the working-set size'),
    bandwidth_level: 'L3',
    mfu: figure(work.flops / (peakFlops * (clean / 1e3)), 'ratio', 'flops / (duration × peak)'),
    mbu: figure(work.bytes / (bandwidth * (clean / 1e3)), 'ratio', 'bytes / (duration × bandwidth)'),
    bound: prefill ? 'compute' : 'memory',
    roofline_ms: figure(rooflineMs, 'ms', 'max(flops / peak, bytes / bandwidth)'),
    breakdown: parts,
  };
}
