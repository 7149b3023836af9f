#!/bin/bash
# Captures the planted faults on this machine's GPU: bash bench/diagnosis/capture.sh OUT [FAULTS] [STEPS], where FAULTS
# are ids, or a half of generated.py, stock.py or engine.py (one program a call: README.md), and STEPS of time,nsys,ncu with commas between (default: all). Wants python3 with torch, nsys and ncu
# on PATH; TIME_LIMIT, NSYS_LIMIT (s) and PAIRS change the limits. Writes OUT/time, OUT/nsys, OUT/ncu and OUT/log.txt; each step has its own limit and may fail alone. About five minutes.
out=$1
faults=${2:-}
steps=${3:-time,nsys,ncu}
here=$(cd "$(dirname "$0")" && pwd)
python=${INFERSCOPE_PYTHON:-python3}
mkdir -p "$out/nsys" "$out/ncu" "$out/time"
# Programs of stock.py and engine.py mark nothing: inferscope's hooks do, as below `inferscope run`.
[[ $faults == stock* || $faults == s[dfghkl]_* || $faults == engine* || $faults == e[wf]_* ]] && hooks=$here/../../python/inferscope_probe
# vLLM compiles all layers but one, and all engines but the first, from its cache.
[[ $faults == engine* || $faults == e[wf]_* ]] && export TORCHINDUCTOR_FORCE_DISABLE_CACHES=0 VLLM_ENABLE_V1_MULTIPROCESSING=0 VLLM_USE_FLASHINFER_SAMPLER=0 VLLM_NO_USAGE_STATS=1 HF_HUB_OFFLINE=1
step() {
  local name=$1 limit=$2 start=$SECONDS
  shift 2
  # Nothing that an earlier step compiled is found again.
  export TRITON_CACHE_DIR=/tmp/diagnosis-triton.$$.$name
  [ -n "$hooks" ] && export PYTHONPATH=$hooks:$PYTHONPATH INFERSCOPE_EVALUATOR=$([ "$name" = nsys ] && echo nsys || echo none)
  timeout -k 5 "$limit" "$@" >"$out/$name.out" 2>"$out/$name.err"
  echo "$name: rc $? $((SECONDS - start)) s" | tee -a "$out/log.txt"
}
choose=()
[ -n "$faults" ] && choose=(--faults "$faults")
counters=("${choose[@]}")
if [ -n "$faults" ]; then
  # Counters are read of those faults only that are known by them.
  some=$(tr ',' '\n' <<<"$faults" | grep -xE 'wave_quantization|uncoalesced|bank_conflicts|low_occupancy' | paste -sd,)
  counters=(--faults "$some")
fi

[[ $steps == *time* ]] && step time $(( ${TIME_LIMIT:-95} + 35 )) "$python" -B "$here/capture.py" time --out "$out/time" --limit-s "${TIME_LIMIT:-95}" --pairs "${PAIRS:-12}" "${choose[@]}"

reports=/tmp/diagnosis-reports.$$
mkdir -p "$reports"
export out
if [[ $steps == *nsys* ]]; then
  # One report for every pair of cudaProfilerStart and cudaProfilerStop.
  step nsys $(( ${NSYS_LIMIT:-160} + 70 )) nsys profile --trace=cuda,nvtx --cuda-graph-trace=node --sample=none --cpuctxsw=none \
    --capture-range=cudaProfilerApi --capture-range-end=repeat:200 --output="$reports/r" --force-overwrite=true \
    "$python" -B "$here/capture.py" nsys --out "$out/nsys" --limit-s "${NSYS_LIMIT:-160}" "${choose[@]}"
  export_one() {
    timeout 60 nsys export --type parquetdir --output "$out/nsys/$(basename "$1" .nsys-rep).parquetdir" --force-overwrite=true "$1" ||
      echo "no export of $1" >>"$out/log.txt"
  }
  export -f export_one
  step export 90 bash -c "ls $reports/*.nsys-rep | xargs -P "$(nproc)" -I{} bash -c 'export_one {}'"
  ls -l "$reports" >>"$out/log.txt"
fi

if [[ $steps == *ncu* ]] && { [ -z "$faults" ] || [ -n "$some" ]; }; then
  step ncu 75 ncu --export "$reports/counters" --force-overwrite --target-processes=all --set=full --clock-control=none --nvtx \
    --profile-from-start off "$python" -B "$here/capture.py" ncu --out "$out/ncu" --limit-s 50 "${counters[@]}"
  step ncu-raw 20 ncu --import "$reports/counters.ncu-rep" --csv --page raw
  step ncu-details 20 ncu --import "$reports/counters.ncu-rep" --csv --page details
  mv "$out/ncu-raw.out" "$out/ncu/raw.csv"
  mv "$out/ncu-details.out" "$out/ncu/details.csv"
fi
mkdir -p "$out/reports" && mv "$reports"/*.nsys-rep "$reports"/*.ncu-rep "$out/reports/" 2>/dev/null
rmdir "$reports" 2>/dev/null
cat "$out/log.txt"
