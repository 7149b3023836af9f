"""One greedy generation of the transformers engine: its clock stamps, device times and device work.

sync=step: the tokens of a step reach the host before the next step starts, as in a server that streams. A stage ends when
they arrive; between two stages the device is idle.
sync=end: the host runs ahead and waits once, after the last step. Stages are then the intervals between device events,
converted to the host's clock at the start of the iteration, when the device was idle.
"""

import gc
import sys
import time
from typing import Any, Dict, List, Optional, Tuple

from inferscope_decoder import Decoder, random_prompt, synchronize
from inferscope_ranges import Ranges, evaluator_range, is_evaluated, range_opener
from inferscope_record import mark_name, recorder

# Pause between the stages of an iteration under the profiler: far longer than the difference between the clocks of profiler
# and host.
PAUSE_S = 0.0003

Interval = Tuple[int, int]


class Stage:
    """A prefill, with `step` None, or a decode step."""

    def __init__(self, step: Optional[int], start_ns: int, end_ns: int, device_dur_ns: Optional[int] = None) -> None:
        self.step, self.start_ns, self.end_ns, self.device_dur_ns = step, start_ns, end_ns, device_dur_ns

    @property
    def kind(self) -> str:
        return "prefill" if self.step is None else "decode"


class Iteration:
    """Times and tokens of one generation. `tokens`: [output_len][batch_size] token ids."""

    def __init__(self, number: int, start_ns: int, end_ns: int, stages: List[Stage], tokens: List[List[int]]) -> None:
        self.number, self.start_ns, self.end_ns, self.stages, self.tokens = number, start_ns, end_ns, stages, tokens

    def record(self, point: Any, launch: int, warmup: bool) -> int:
        """Writes the record lines. -> end-to-end ns"""
        batch = point.batch_size
        for stage in self.stages:
            step = 0 if stage.step is None else stage.step
            prefill = stage.step is None
            new = batch * point.input_len if prefill else batch
            context = new if prefill else batch * (point.input_len + step + 1)
            recorder().stage(
                stage.kind, stage.start_ns, stage.end_ns, self.number, step, batch, new, context, warmup, stage.device_dur_ns
            )
        first_ns = self.stages[0].end_ns
        sizes = (batch, point.input_len, point.output_len)
        recorder().request(self.start_ns, first_ns, self.end_ns, self.number, *sizes, warmup, launch, point.name)
        return self.end_ns - self.start_ns


class Runner:
    """Iterations of one model on one device."""

    def __init__(self, model: Any, device: str, args: Dict[str, Any], seed: int) -> None:
        self.model, self.device, self.args, self.seed = model, device, args, seed
        self.gpu = device != "cpu"
        # A MemoryWatch for `inferscope memory`; it watches warm-up repeats, not timed ones.
        self.watch_memory: Any = None
        # The Group of ranks that share the model; None if this process has all of it.
        self.group: Any = None
        self._events: List[Any] = []
        if self.gpu:  # allocates cuBLAS's workspace, which would count as memory of the first point
            import torch

            with torch.inference_mode():
                model(input_ids=torch.zeros(1, 2, dtype=torch.long, device=device), use_cache=False)

    def decoder(self, point: Any) -> Decoder:
        mode, attn = self.args["mode"], self.args["attn"]
        return Decoder(self.model, self.device, mode, attn, point.batch_size, point.input_len, point.output_len)

    def generate(self, point: Any, number: int, pause: float = 0.0) -> Iteration:
        """One generation with a new prompt. `pause`: idle time between the stages, which then end on the host."""
        decoder = point.decoder
        prompt = random_prompt(self.model.config.vocab_size, point.batch_size, point.input_len, self.seed, number)
        memory = self.watch_memory if number < 0 else None
        steps = range(point.output_len)
        syncs_each_step = self.args["sync"] == "step" or pause > 0
        events = self._make_timers(len(steps)) if self.gpu else []
        # An iteration with pauses is one range, opened by the caller.
        ranges = Ranges(None if pause else range_opener())
        marks_sampling = ranges.on and is_evaluated()
        stamps: List[Interval] = []
        tokens: List[Any] = []
        token: Any = None
        synchronize(self.device)
        if memory:
            memory.before_prefill()
        start_ns = time.monotonic_ns()
        with ranges:
            for step in steps:
                if memory and step and step == len(steps) - 1:
                    memory.before_last_decode()
                begin_ns = time.monotonic_ns() if step else start_ns
                if ranges.on:
                    ranges.begin(mark_name("decode" if step else "prefill", number, max(0, step - 1)))
                if events:
                    events[2 * step].record()
                if step:
                    logits = decoder.decode(token)
                else:
                    logits = decoder.prefill(prompt.to(self.device))
                if marks_sampling:
                    ranges.begin(mark_name("sampling", number, step))
                token = logits.argmax(-1, keepdim=True)
                if marks_sampling:
                    ranges.end()
                if events:
                    events[2 * step + 1].record()
                tokens.append(token.flatten().tolist() if syncs_each_step else token)
                stamps.append((begin_ns, time.monotonic_ns()))
                if ranges.on:
                    ranges.end()
                if pause:
                    time.sleep(pause)
                if memory and not step:
                    memory.after_prefill(decoder.cache)
        if not syncs_each_step:
            import torch

            rows = torch.cat(tokens, 1).tolist()
            tokens = [list(column) for column in zip(*rows)]
        end_ns = stamps[-1][1] if syncs_each_step else time.monotonic_ns()
        if memory and len(steps) > 1:
            memory.after_last_decode(decoder.cache)
        decoder.free_state()
        stages = [Stage(step - 1 if step else None, *stamps[step]) for step in steps]
        if events:
            _read_timers(stages, events, None if syncs_each_step else start_ns)
        return Iteration(number, start_ns, end_ns, stages, tokens)

    def watch(self, point: Any, launch: int, number: int) -> None:
        """Runs a generation under torch.profiler with device activities only, and records its device_work lines."""
        import torch

        synchronize(self.device)
        probe = sys.modules.get("inferscope_torch")
        if probe is not None:  # two profilers cannot run at once; the probe's trace has the timed repeats by now
            probe.finish()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            before = _realtime_offset_ns()
            with evaluator_range(mark_name("other", number, None)):
                run = self.generate(point, number, PAUSE_S)
            after = _realtime_offset_ns()
            synchronize(self.device)
        offset_ns = (before + after) // 2
        stages = [Stage(stage.step, stage.start_ns + offset_ns, stage.end_ns + offset_ns) for stage in run.stages]
        activities = device_activities(profile.profiler.kineto_results.events())
        work = work_by_kind(stages, activities)
        if isinstance(work, str):
            sys.stderr.write("device work of %s is not known: %s\n" % (point.name, work))
            return
        for kind, sums in work.items():
            recorder().device_work(point.name, launch, kind, **sums)

    def set_capturing(self, on: bool) -> None:
        """Starts or stops the capture of a profiler that waits for it (nsys --capture-range=cudaProfilerApi)."""
        import torch

        if self.gpu:
            torch.cuda.profiler.start() if on else torch.cuda.profiler.stop()

    def _make_timers(self, stages: int) -> List[Any]:
        import torch

        while len(self._events) < 2 * stages:
            self._events.append(torch.cuda.Event(enable_timing=True))
        return self._events[: 2 * stages]

    def allocated_bytes(self) -> int:
        import torch

        return int(torch.cuda.memory_allocated()) if self.gpu else 0

    def peak_bytes(self) -> Optional[int]:
        """Maximum allocated bytes since `reset_peak`; None on the CPU, because its allocator does not count."""
        import torch

        if not self.gpu:
            return None
        watched_peak = self.watch_memory.peak_allocated if self.watch_memory else 0
        return max(int(torch.cuda.max_memory_allocated()), watched_peak)

    def reset_peak(self) -> None:
        import torch

        if self.watch_memory:
            self.watch_memory.reset_peak()
        if self.gpu:
            torch.cuda.reset_peak_memory_stats()

    def record_peak(self, peak_bytes: int) -> None:
        import torch

        if self.gpu:
            source = "torch.cuda.max_memory_allocated"
            recorder().memory("max_memory_allocated", peak_bytes, source, torch.cuda.current_device(), "peak")

    def release_memory(self) -> None:
        """Returns the allocator's unused memory to the device."""
        import torch

        gc.collect()
        if self.gpu:
            torch.cuda.empty_cache()


def _read_timers(stages: List[Stage], events: List[Any], host_start_ns: Optional[int]) -> None:
    """Device times of the stages; with `host_start_ns` also their intervals, relative to the first event."""
    for number, stage in enumerate(stages):
        begin, end = events[2 * number], events[2 * number + 1]
        stage.device_dur_ns = round(begin.elapsed_time(end) * 1e6)
        if host_start_ns is not None:
            stage.start_ns = host_start_ns + (round(events[0].elapsed_time(begin) * 1e6) if number else 0)
            stage.end_ns = host_start_ns + round(events[0].elapsed_time(end) * 1e6)


def _realtime_offset_ns() -> int:
    """CLOCK_REALTIME - CLOCK_MONOTONIC, from the shortest of five readings."""
    readings = []
    for _ in range(5):
        before = time.monotonic_ns()
        realtime = time.time_ns()
        after = time.monotonic_ns()
        readings.append((after - before, realtime - (before + after) // 2))
    return min(readings)[1]


Activity = Tuple[int, int, bool]


def device_activities(events: List[Any]) -> List[Activity]:
    """The events of a profile that ran on the device. -> (start, end, whether it is a copy or memset), sorted by
    start
    """
    from torch.autograd import DeviceType

    activities = []
    for event in events:
        name = event.name()
        if event.device_type() == DeviceType.CPU or event.is_user_annotation() or name.endswith((" Sync", " Wait Event")):
            continue
        start_ns = event.start_ns()
        activities.append((start_ns, start_ns + event.duration_ns(), name.startswith(("Memcpy", "Memset", "CopyDevice", "Fill"))))
    return sorted(activities)


def work_by_kind(stages: List[Stage], activities: List[Activity]) -> Any:
    """Sums by stage kind, or an error text.

    The device is idle during the pause between two stages, so the middle of the pause separates their work if the
    clocks differ by less than half of it. This is checked: no event crosses a boundary or is outside of all stages, and
    every stage has work.
    """
    half = int(PAUSE_S * 1e9) // 2
    boundaries = [stages[0].start_ns - half] + [stage.end_ns + half for stage in stages]
    work: Dict[str, Dict[str, int]] = {}
    position = 0
    if activities and activities[0][0] < boundaries[0]:
        return "the profiler saw work %.3f ms before the first stage" % ((boundaries[0] - activities[0][0]) / 1e6)
    for number, stage in enumerate(stages):
        in_stage = []
        while position < len(activities) and activities[position][0] < boundaries[number + 1]:
            in_stage.append(activities[position])
            position += 1
        if not in_stage:
            return "the profiler saw no work in stage %d of %d" % (number + 1, len(stages))
        if max(end for _, end, _ in in_stage) > boundaries[number + 1]:
            return "the profiler saw work across the end of stage %d" % (number + 1)
        names = ("stages", "kernels", "kernel_ns", "copies", "copy_ns", "busy_ns", "wall_ns")
        sums = work.setdefault(stage.kind, dict.fromkeys(names, 0))
        sums["stages"] += 1
        sums["wall_ns"] += stage.end_ns - stage.start_ns
        sums["busy_ns"] += union_ns([(start, end) for start, end, _ in in_stage])
        for start, end, copy in in_stage:
            sums["copies" if copy else "kernels"] += 1
            sums["copy_ns" if copy else "kernel_ns"] += end - start
    if position < len(activities):
        return "the profiler saw work after the last stage"
    return work


def union_ns(intervals: List[Interval]) -> int:
    """Time covered by at least one of the intervals, which are sorted by start."""
    total, until = 0, None  # type: int, Optional[int]
    for start, end in intervals:
        if until is None or start > until:
            total, until = total + end - start, end
        elif end > until:
            total, until = total + end - until, end
    return total
