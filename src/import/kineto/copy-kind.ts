interface CopyKind {
  kind: string | null;
  src_kind: string | null;
  dst_kind: string | null;
}

/** "Memcpy HtoD (Pinned -> Device)", "Memcpy PtoP", "Memset (Device)"; ROCm: "CopyHostToDevice", "FillBuffer". */
export function copyKind(name: string): CopyKind {
  if (/^memset|^fill/i.test(name)) {
    return { kind: 'memset', src_kind: null, dst_kind: memoryKind(/\((.*)\)/.exec(name)?.[1]) };
  }
  const direction = /\b(HtoD|DtoH|DtoD|HtoH|PtoP)\b/.exec(name)?.[1] ?? spelledOutDirection(name);
  const ends = /\(\s*([\w ]+?)\s*->\s*([\w ]+?)\s*\)/.exec(name);
  return { kind: direction, src_kind: memoryKind(ends?.[1]), dst_kind: memoryKind(ends?.[2]) };
}

function spelledOutDirection(name: string): string | null {
  const match = /(Host|Device|Peer)To(Host|Device|Peer)/i.exec(name);
  return match ? `${match[1]![0]!.toUpperCase()}to${match[2]![0]!.toUpperCase()}` : null;
}

/** ROCm's "Host" does not say whether the memory is pinned. */
function memoryKind(word: string | undefined): string | null {
  const memoryKinds: Record<string, string> = {
    pageable: 'pageable',
    pinned: 'pinned',
    device: 'device',
    managed: 'managed',
    array: 'device',
  };
  return memoryKinds[word?.toLowerCase() ?? ''] ?? null;
}
