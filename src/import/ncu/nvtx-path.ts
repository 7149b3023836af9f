import { redactText } from '../../model/redaction.js';

/**
 * NVTX ranges around a launch in ncu's format, outermost first: `1007  "<default
 * domain>:inferscope:decode:0:0:none:none:none:none:none:none"  "<default domain>:…" ` is the thread, then
 * domain:name:payload type:payload value:color type:color:message type:message of each range. The name may contain
 * colons; the six fields after it are counted from the end. A token in a name is redacted.
 * @returns "decode / layer 3", with the domain before the name unless it is the default one; null outside of ranges
 */
export function nvtxPath(pushPop: string, startEnd: string): string | null {
  const names = [...rangeNames(startEnd), ...rangeNames(pushPop)];
  return names.length > 0 ? redactText(names.join(' / ')) : null;
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
