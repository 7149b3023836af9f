import { quantizedTensors } from '../model/quantized-tensors.js';
import type { Workload } from '../model/manifest.js';
import { plural } from '../vocabulary/format.js';
import type { Text } from './block.js';

/** Facts about the model that a program reported; empty without any. */
export function modelFacts(workload: Workload | null): { name: string; text: Text }[] {
  const model = workload?.model;
  if (!model?.facts) return [];
  const { facts, tensors = [] } = model;
  const quantized = quantizedTensors(tensors, model.dtype);
  const { adapters, device_map: deviceMap } = facts;
  const items: [string, Text | null][] = [
    [
      'model',
      `${facts.class ?? model.name}, ${model.dtype}${facts.stored_dtype === null ? '' : ` (torch.autocast; weights in ${facts.stored_dtype})`}`,
    ],
    ['weights', model.weight_bytes === null ? null : { n: model.weight_bytes / 1e9, unit: 'GB', digits: 4 }],
    [
      'quantized',
      quantized && [`${quantized.name}, `, { n: quantized.bytesPerWeight, unit: '' }, ' bytes per weight'],
    ],
    ['attention', facts.attention],
    ['KV cache', facts.cache],
    [
      'adapters',
      adapters &&
        `${adapters.kind} in ${plural(adapters.layers, 'layer')}, rank ${adapters.ranks.join(', ')}, ${adapters.merged === adapters.layers ? 'merged' : adapters.merged === 0 ? 'not merged' : `${adapters.merged} merged`}`,
    ],
    [
      'placed on',
      deviceMap &&
        Object.entries(deviceMap)
          .map(([device, modules]) => `${device} (${plural(modules, 'module')})`)
          .join(', '),
    ],
    [
      'asynchronous scheduling',
      facts.async_scheduling === null ? null : facts.async_scheduling ? 'on' : 'off',
    ],
    ['requests at once', facts.max_num_seqs === null ? null : `at most ${facts.max_num_seqs}`],
    [
      'padding',
      facts.padding_share === null
        ? null
        : [{ n: 100 * facts.padding_share, unit: '%' }, ' of the prompt positions'],
    ],
  ];
  return items.flatMap(([name, text]) => (text === null ? [] : [{ name, text }]));
}
