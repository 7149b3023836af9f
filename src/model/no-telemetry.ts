/**
 * Environment of every process of ours that loads a library which reports its use: nothing leaves the machine. Each is the
 * library's own switch (read on 2026-11-23): ONNX Runtime 1.30 (a device id, CPU and model names, to a database in
 * ~/.cache/Microsoft and to its maker), vLLM's usage statistics, huggingface_hub's and Ray's. A user's program under `run`
 * keeps the environment it was given.
 */
export const noTelemetry = {
  ORT_DISABLE_TELEMETRY: '1',
  VLLM_NO_USAGE_STATS: '1',
  HF_HUB_DISABLE_TELEMETRY: '1',
  RAY_USAGE_STATS_ENABLED: '0',
  DO_NOT_TRACK: '1',
} as const;
