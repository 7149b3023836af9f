import { redactText } from '../../model/redaction.js';
import type { StageKind } from '../../model/record.js';

/**
 * NVTX ranges around a launch in ncu's format, outermost first: `1007  "<default
 * domain>:inferscope:decode:0:0:none:none:none:none:none:none"  "<default domain>:…" ` is the thread, then
 * domain:name:payload type:payload value:color type:color:message type:message of each range. The name may contain
 * colons; the six fields after it are counted from the end. A token in a name is redacted.
 * @returns names, with the domain before the name unless it is the default one
 */
export function nvtxRanges(pushPop: string, startEnd: string): string[] {
  return [...rangeNames(startEnd), ...rangeNames(pushPop)].map((name) => redactText(name));
}

/**
 * The kind of stage of a launch by the names of its ranges, outermost first: the innermost phase of a forward pass, else warm-up or
 * loading. A decode step in a warm-up counts as decode. Null if no range marks a stage.
 */
export function phaseOf(names: readonly string[], kindOf: (name: string) => StageKind): StageKind | null {
  const kinds = names.map(kindOf).filter((kind) => kind !== 'other');
  return kinds.findLast((kind) => kind !== 'warmup' && kind !== 'load') ?? kinds.at(-1) ?? null;
}

/** Launching thread, if ncu's NVTX column has one. */
export function nvtxThread(pushPop: string): number | null {
  const match = /^\s*(\d+)\s/.exec(pushPop);
  return match ? Number(match[1]) : null;
}

function rangeNames(text: string): string[] {
  return [...text.matchAll(/"([^"]*)"/g)].map(([, range]) => {
    const parts = range!.split(':');
    const domain = parts[0]!;
    const name = parts.length > 7 ? parts.slice(1, -6).join(':') : parts.slice(1).join(':');
    return domain === '<default domain>' ? name : `${domain}:${name}`;
  });
}
