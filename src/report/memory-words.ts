import type { MemoryProfile } from '../model/documents/memory-profile.js';
import { nbsp, noValue } from './format.js';

/** "vllm 0.32.0"; of a server that ran already also how it was asked. */
export function engineWords({
  engine_metadata: engine,
  metadata,
}: Pick<MemoryProfile, 'engine_metadata' | 'metadata'>): string {
  const known = engine.engine_type === 'openai' ? 'a server' : engine.engine_type;
  const name = [known, engine.engine_version].filter(Boolean).join(' ');
  return metadata.where === 'url' ? `${name} behind an OpenAI-compatible URL` : name;
}

/** 1.234 GB: always in 10^9 bytes, as memory profiles have it. */
export function gbText(gb: number | null): string {
  if (gb === null) return noValue;
  return `${gb < 0 ? '−' : ''}${Math.abs(gb).toFixed(Math.abs(gb) < 100 ? 3 : 1)}${nbsp}GB`;
}

/** +12.3 %, one decimal: differences of memory are small and exact. */
export function signedPercent(share: number | null): string {
  if (share === null) return noValue;
  const percent = (Math.abs(share) * 100).toFixed(1);
  const sign = percent === '0.0' ? '' : share > 0 ? '+' : '−';
  return `${sign}${percent}${nbsp}%`;
}
