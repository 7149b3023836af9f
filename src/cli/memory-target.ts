import { hostTarget } from '../capture/memory/host-target.js';
import type { OpenTarget } from '../capture/memory/memory-target.js';

/** Opens the container, server or host that the engine runs in, loading only its module. */
export const openTarget: OpenTarget = async (request) => {
  if (request.container !== null) {
    const { openContainer } = await import('../capture/memory/container.js');
    return openContainer(request);
  }
  if (request.url !== null) {
    const { openUrl } = await import('../capture/memory/url.js');
    return openUrl(request);
  }
  return hostTarget(request.engine ?? 'onnx', request);
};
