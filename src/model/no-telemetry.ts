/**
 * Environment that disables usage reports of libraries in every process of ours, so that nothing leaves the machine. Each variable is the
 * library's own switch (as of 2026-11-23): ONNX Runtime 1.30 (sends a device id, CPU and model names), vLLM's usage statistics,
 * huggingface_hub and Ray. A user's program under `run` keeps its environment.
 */
export const noTelemetry = {
  ORT_DISABLE_TELEMETRY: '1',
  VLLM_NO_USAGE_STATS: '1',
  HF_HUB_DISABLE_TELEMETRY: '1',
  RAY_USAGE_STATS_ENABLED: '0',
  DO_NOT_TRACK: '1',
} as const;
