import { InferscopeError } from '../../model/errors.js';

/** [major, minor] of "0.8.5.post1"; null for a development build. */
export function versionParts(version: string): [number, number] | null {
  const match = /^(\d+)\.(\d+)/.exec(version);
  if (!match || version.includes('dev')) return null;
  return [Number(match[1]), Number(match[2])];
}

/** @throws E_TOOL_VERSION for a vLLM older than the interface in use */
export function needVersion(python: string, version: string, minor: number, feature: string): void {
  const parts = versionParts(version);
  if (parts === null || parts[0] > 0 || parts[1] >= minor) return;
  throw new InferscopeError('E_TOOL_VERSION', {
    what: `vLLM ${version} is too old for ${feature}`,
    why: `It is in vLLM 0.${minor} and later.`,
    fix: `Type: ${python} -m pip install --upgrade vllm`,
  });
}

/** Adds to an error how to install vLLM, or how to measure without it. */
export function withServerHint(error: unknown): unknown {
  if (!(error instanceof InferscopeError) || error.code !== 'E_ENGINE_MISSING') return error;
  const { what, why, fix } = error.parts;
  const server =
    'or measure a running vLLM server: inferscope bench latency --engine openai --url http://HOST:8000/v1';
  return new InferscopeError(error.code, { what, why, fix: `${fix}\n${server}` }, { cause: error });
}
