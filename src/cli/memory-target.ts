import { hostTarget } from '../capture/memory/host-target.js';
import type { OpenTarget } from '../capture/memory/where.js';

/** The place that was named, loaded when it is asked for. */
export const openTarget: OpenTarget = async (request) => hostTarget(request.engine ?? 'onnx', request);
