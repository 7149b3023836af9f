/** The file that `sweep --init` writes: every key with its meaning and default. */
export const sweepTemplate = `# inferscope sweep --config models.yaml
#
# Memory and latency of every combination of the lists below, each in its own process:
#   inferscope sweep --config models.yaml --dry-run    what would run, how long, and what will not fit
#   inferscope sweep --config models.yaml              run it
#   inferscope sweep --resume                          continue after Ctrl-C, a crash or a reboot
#
# Results: results/memory-profiles/<model>-profile_<stamp>.json, one per run,
#          results/batch-bench-results-<stamp>.csv, results/batch-bench-report-<stamp>.txt and .html

# Where the engine runs: host (default), container (each entry names a running one), url (a server).
# mode: host
# engine: transformers        # transformers, vllm or onnx (embedded, CPU)
# engine_args: [enforce_eager=true]
# python: /opt/venv/bin/python # Python that has the engine
# url: http://127.0.0.1:8000/v1
# device: cuda
# weights: trained            # random: the same architecture without any download
# timeout: 30m                # per run; 90s, 10m, 2h, or a number of seconds
# retries: 1                  # after machine faults (driver, Docker, network), not model errors

models:
  - model_id: Qwen/Qwen2.5-0.5B-Instruct     # hub id, folder, config.json or GGUF
    input_lengths: [512, 1024]               # prompt tokens; one number or a list
    output_lengths: [128]                    # tokens generated
    batch_sizes: [1, 8, 16]                  # sequences per batch
    # container_name: vllm-1                 # required with mode: container
    # dtype: float16                         # float32, float16, bfloat16, float8, int8, int4
    # tensor_parallel_size: 1                # GPUs that share the model
    # quantization: awq                      # default: none
    # kv_cache_dtype: fp8                    # default: as dtype
    # gpu_memory_utilization: 0.9            # share of a GPU that vLLM may take, 0 to 1
    # max_model_len: 4096                    # maximum sequence length; default: the model's
    #
    # Dimensions, if config.json lacks them or is wrong:
    # model_params: 0.49e9                   # number of parameters
    # num_layers: 24
    # num_heads: 14
    # num_kv_heads: 2
    # head_dim: 64
    # hidden_size: 896

# Or any other inferscope command over a grid (instead of models:); {name} stands for a value inside the command,
# everything else is added as --name value:
#
# command: bench latency --engine transformers --model Qwen/Qwen2.5-0.5B-Instruct
# grid:
#   batch-size: [1, 8, 32]
#   dtype: [float16, bfloat16]
`;
