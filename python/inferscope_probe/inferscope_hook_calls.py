"""A call of a model as a step of the record: its kind, its sizes, its range or times. inferscope_hooks.py watches the calls.

The outermost call of a model is a step: prefill or decode by the length of its query and what its cache holds, sizes from
shapes alone. A step is an NVTX or record_function range where an evaluator listens, else a stage line of the record
(inferscope_hook_times.py).
"""

import time
import types
import weakref
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

import inferscope_record
from inferscope_after_import import guarded, warn
from inferscope_hook_inputs import cache_name, cache_of, count_padding, first_tensor, holds_embedding, is_mask, receives_hidden_states
from inferscope_hook_steps import Sequence, classify_call, classify_plain_call
from inferscope_hook_threads import ThreadState, this_thread, threads
from inferscope_hook_times import RepeatedStep, Step, Times
from inferscope_ranges import Close, is_evaluated, range_opener
from inferscope_torch_model import RecordedModel, returns_tokens

# First calls of a compiled model: compilation, recording of its CUDA graph, its first replay.
_FIRST_COMPILED = 3
# Arguments of hand-written models that contain the number of tokens in the cache.
_POSITIONS = ("start_pos", "input_pos", "position", "pos", "offset", "past_length", "cache_len")


class ModelFacts:
    """Facts of a model that its calls do not change, and which calls were seen."""

    __slots__ = ("model", "is_plain", "is_causal", "encodes", "has_encoder", "takes_features", "devices", "calls", "replayed")

    def __init__(self, model: Any) -> None:
        config = getattr(model, "config", None)
        self.model = weakref.ref(model)
        # Whether it is not a model of transformers.
        self.is_plain = not hasattr(model, "get_input_embeddings") or config is None
        # Whether it computes logits over its vocabulary; otherwise it returns hidden states or classes, and no decode
        # follows. None: not known yet.
        self.is_causal: Optional[bool] = None
        generates = getattr(model, "can_generate", None)
        self.encodes = not self.is_plain and generates is not None and not generates()
        inner = model.get_base_model() if hasattr(model, "get_base_model") else model  # PEFT
        is_both = bool(getattr(config, "is_encoder_decoder", False))
        self.has_encoder = is_both and hasattr(getattr(inner, "base_model", inner), "decoder")
        main_input = getattr(model, "main_input_name", "input_ids")
        self.takes_features = not self.is_plain and main_input not in ("input_ids", "inputs_embeds")
        self.devices = len(set((getattr(model, "hf_device_map", None) or {}).values()))
        # Number of calls by kind, batch and length.
        self.calls: Dict[Tuple[Any, ...], int] = {}
        # The same keys of calls that a CUDA graph replays.
        self.replayed: Set[Tuple[Any, ...]] = set()


class ModelCall(NamedTuple):
    """What the arguments of a call show."""

    facts: ModelFacts
    batch: int
    length: int  # tokens per sequence
    query: Any  # tensor of this batch and length
    ids: Any = None  # of the encoder, if there is a decoder; else the query
    decoder: Any = None  # ids or embeddings of the decoder
    position: Optional[int] = None
    kwargs: Optional[Dict[str, Any]] = None  # None for the replay of a graph
    is_compiled: bool = False


times = Times()
recorded_model = RecordedModel()
_facts: Dict[int, ModelFacts] = {}
_torch: Any = None
_iterations = _stages = -1
_broken = False
_quiet = False  # an engine with its own marks, or a workload that records itself
_opens_ranges = False
_on_first_call: Callable[[], None] = lambda: None


def set_up(model: Optional[RecordedModel], opens_ranges: bool) -> None:
    """`model`: where another probe of this process records one."""
    global recorded_model, _opens_ranges
    recorded_model, _opens_ranges = model or recorded_model, opens_ranges


def on_torch(torch: Any) -> None:
    global _torch
    _torch = torch
    times.on_torch(torch)


def on_first_call(action: Callable[[], None]) -> None:
    """Calls `action` before the first step of each model."""
    global _on_first_call
    _on_first_call = action


def be_quiet() -> None:
    global _quiet
    _quiet = True


def is_silent() -> bool:
    """inferscope's engines and workloads, and programs that use inferscope_record, record their stages themselves."""
    return _broken or _quiet or inferscope_record._recorder is not None


def fail(what: str, error: BaseException) -> None:
    global _broken
    if not _broken:
        _broken = True
        this_thread().repeated = None
        warn("hooks: %s failed, stages end here and the program goes on: %r" % (what, error))


def start_sequence(speculative: bool) -> Sequence:
    global _iterations
    _iterations += 1
    thread = this_thread()
    thread.stop_repeating()
    thread.sequence = Sequence(_iterations, speculative)
    times.flush_if_due()
    return thread.sequence


def run_step(called: Any, call: Callable[..., Any], args: Any, kwargs: Any, first: int, is_compiled: bool) -> Any:
    """Calls the model `called`. `first`: index of its first argument in `args`."""
    if is_silent() or called is None:
        return call(*args, **kwargs)
    opened = None
    try:
        model_call = _read_call(called, args[first:], kwargs, is_compiled)
        if model_call is not None:
            opened = open_step(model_call, called)
    except Exception as error:
        fail("reading a step", error)
    if opened is None:
        return call(*args, **kwargs)
    result = None
    this_thread().busy = True
    try:
        result = call(*args, **kwargs)
        return result
    finally:
        this_thread().busy = False
        end_ns = time.monotonic_ns()
        try:
            close_step(opened, result, end_ns)
        except Exception as error:
            fail("recording a step", error)


def run_stage(kind: str, call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Calls a function as a stage: `load` if it loads or moves a model, or `warmup`."""
    global _stages
    _stages += 1
    number = _stages
    opener = step_opener()
    close_range = opener(inferscope_record.mark_name(kind, number, 0)) if opener else None
    this_thread().busy = True
    start_ns = time.monotonic_ns()
    try:
        return call(*args, **kwargs)
    finally:
        this_thread().busy = False
        if close_range is not None:
            close_range()
        else:
            times.add_step(Step(kind, number, 0, start_ns), time.monotonic_ns())


def step_opener() -> Optional[Callable[[str], Close]]:
    """Opens ranges if an evaluator listens; None: steps are written as lines of the record."""
    return range_opener() if _opens_ranges and is_evaluated() else None


def begin_calls() -> None:
    """Before a step of a model that is known: others are not looked for."""
    _on_first_call()
    this_thread().stop_repeating()


def note_model(model: Any, cache: str) -> None:
    """After the first step of a model of transformers with its own cache."""
    if recorded_model.note_run(model):
        recorded_model.facts["cache"] = cache
        _record_model()


def _read_call(called: Any, args: Any, kwargs: Any, is_compiled: bool) -> Optional[ModelCall]:
    """None if the call is not a step: drafts, training, no tokens, or the capture of a CUDA graph."""
    if this_thread().generating > 1 or (called.training and _torch.is_grad_enabled()) or _torch.compiler.is_compiling():
        return None
    facts = _facts.get(id(called))
    if facts is None or facts.model() is not called:
        facts = _facts[id(called)] = ModelFacts(called)
    call = (_read_plain if facts.is_plain else _read_transformers)(called, facts, args, kwargs, is_compiled)
    if call is not None and call.query.is_cuda and _torch._C._cuda_isCurrentStreamCapturing():
        graph = this_thread().graph
        if graph is not None and not hasattr(graph, "inferscope_call"):
            # The graph outlives the tensors of this call.
            query = types.SimpleNamespace(is_cuda=True, device=call.query.device, shape=None)
            graph.inferscope_call = ModelCall(facts, call.batch, call.length, query)
        return None
    return call


def _read_plain(called: Any, facts: ModelFacts, args: Any, kwargs: Any, is_compiled: bool) -> Optional[ModelCall]:
    """A call of a module of the program: with token ids, the output of the embedding that was called last, or the hidden
    states of another process.
    """
    query = first_tensor(args, kwargs, 2)
    if receives_hidden_states(called, args, kwargs) and this_thread().embedded_shape is None:
        query = first_tensor(args, kwargs, 3)
        batch, length = query.shape[:2]
    elif query is None:
        query = first_tensor(args, kwargs, 3) if this_thread().embedded_shape is not None else None
        if query is None:
            return None
        (batch, length), this_thread().embedded_shape = this_thread().embedded_shape, None  # type: ignore[misc]
        if set(query.shape[:2]) != {batch, length}:
            return None
    else:
        if not holds_embedding(called):
            return None
        batch, length = query.shape
    position = next((value for value in args if type(value) is int), None)
    if position is None:
        position = next((kwargs[name] for name in _POSITIONS if type(kwargs.get(name)) is int), None)
    return ModelCall(facts, batch, length, query, query, None, position, kwargs, is_compiled)


def _read_transformers(called: Any, facts: ModelFacts, args: Any, kwargs: Any, is_compiled: bool) -> Optional[ModelCall]:
    decoder = kwargs.get("decoder_input_ids")
    if decoder is None:
        decoder = kwargs.get("decoder_inputs_embeds")
    ids = kwargs.get("input_ids")
    if ids is None:
        ids = kwargs.get("inputs_embeds")
    if ids is None and args:
        ids = args[0]
    if ids is None and facts.takes_features:
        ids = kwargs.get(called.main_input_name)
    query = ids if decoder is None else decoder
    shape = getattr(query, "shape", ())
    if len(shape) < 2 or (len(shape) == 2 and query.is_floating_point()):
        return None
    return ModelCall(facts, shape[0], shape[1], query, ids, decoder, None, kwargs, is_compiled)


Opened = Tuple[Step, Optional[Close], Optional[ModelFacts], Any]
"""A step, how to close its range, the facts that its result completes, and its cache where these need it."""


def open_step(call: ModelCall, owner: Any) -> Opened:
    """`owner`: the called model, or the graph that is replayed."""
    facts, batch, length, query, decoder, kwargs = call.facts, call.batch, call.length, call.query, call.decoder, call.kwargs
    if not facts.calls:
        _on_first_call()
    thread = this_thread()
    thread.steps += 1
    thread.stop_repeating()
    sequence = thread.sequence
    cache = None if facts.is_plain or kwargs is None else cache_of(kwargs)
    is_encoded = decoder is not None and kwargs is not None and kwargs.get("encoder_outputs") is not None
    kind, starts, past = _classify(call, thread, cache, is_encoded)
    if starts or sequence is None:
        sequence = start_sequence(False)
    sequence.advance(batch, length, past)
    decoded = length
    runs_both = facts.has_encoder and not is_encoded and kwargs is not None
    if decoder is not None and runs_both and getattr(call.ids, "shape", None) is not None and not facts.takes_features:
        length += call.ids.shape[1]
    number = sequence.steps[kind]
    sequence.steps[kind] = number + 1
    calls, is_first = _count_call(call, kind, length)
    new: Optional[int] = batch * length
    context = None if past is None else batch * (past + decoded)
    if (runs_both and length == decoded) or (facts.takes_features and decoder is None):
        new = context = None  # the output has the number of frames, or of the tokens that labels become
    mask = kwargs.get("attention_mask") if kind == "prefill" and kwargs is not None else None
    padding: Any = count_padding(mask)
    close_range = events = None
    opener = step_opener()
    if opener is not None:
        how = "first" if is_first else "hook" if kwargs is not None else "graph"
        close_range = opener(inferscope_record.hook_name(kind, sequence.iteration, number, how, batch, new, context))
    elif query.is_cuda and facts.devices < 2:
        if is_mask(mask, query.device.type):
            padding = times.count_padding(mask)
        events = times.open(query.device)
    can_repeat = kind == "decode" and batch == new and past is not None and not sequence.speculative and calls >= _FIRST_COMPILED
    if can_repeat and _shows_its_length(call, cache) and not _opens_ranges and (events is not None or not query.is_cuda):
        name, positions = (cache_name({}, None), None) if kwargs is None else (cache_name(kwargs, cache), query.numel())
        thread.repeated = RepeatedStep(times, owner, sequence, cache, name, positions, batch, number + 1, events)
    incomplete = facts if not recorded_model.has_run or (facts.is_plain and facts.is_causal is None) or new is None else None
    step = Step(kind, sequence.iteration, number, time.monotonic_ns(), batch, new, context, is_first, padding, events)
    return step, close_range, incomplete, cache if incomplete is not None else None


def _classify(call: ModelCall, thread: ThreadState, cache: Any, is_encoded: bool) -> Tuple[str, bool, Optional[int]]:
    """-> (kind, whether a sequence starts, tokens in the cache before the call)"""
    facts = call.facts
    if facts.is_plain or call.kwargs is None:
        return classify_plain_call(thread.sequence, call.batch, call.length, call.position, facts.is_causal)
    if facts.encodes and cache is None:
        return "prefill", thread.generating == 0, 0
    return classify_call(thread.sequence, call.batch, call.length, cache, is_encoded, thread.generating > 0)


def _count_call(call: ModelCall, kind: str, length: int) -> Tuple[int, bool]:
    """-> number of earlier calls of this kind and these sizes, and whether this one may compile and plan"""
    facts, key = call.facts, (kind, call.batch, length)
    calls = facts.calls.get(key, 0)
    facts.calls[key] = calls + 1
    if call.kwargs is None and key not in facts.replayed:
        facts.replayed.add(key)
        times.warmed_up(kind, call.batch, call.batch * length)
    return calls, calls < _FIRST_COMPILED and (calls == 0 or call.is_compiled or _is_compiled(facts.model()))


def _shows_its_length(call: ModelCall, cache: Any) -> bool:
    """Whether a repeated call has one more token in the cache, without reading its arguments."""
    if call.kwargs is None:
        return True
    if call.facts.is_plain:
        return call.position is None
    return cache is not None and not isinstance(cache, tuple) and call.decoder is None


def close_step(opened: Opened, result: Any, end_ns: int) -> None:
    step, close_range, incomplete, cache = opened
    if close_range is not None:
        close_range()
    elif step.events is not None:
        times.record(step.events.after, step.events.stream)
    if incomplete is not None and result is not None:
        _complete_facts(incomplete, result, cache)
        out = getattr(result, "last_hidden_state", getattr(result, "logits", None))
        if step.new_tokens is None and step.kind == "prefill" and out is not None and out.dim() == 3:
            encoded = getattr(result, "encoder_last_hidden_state", None)
            source, tokens = 0 if encoded is None else int(encoded.shape[1]), int(out.shape[1])
            step = step._replace(new_tokens=step.batch * (source + tokens), context_tokens=step.batch * tokens)  # type: ignore[operator]
    if close_range is None:
        times.add_step(step, end_ns)


def _complete_facts(facts: ModelFacts, result: Any, cache: Any) -> None:
    """Facts that only the first result of a model shows."""
    called = facts.model()
    if facts.is_plain and facts.is_causal is None:
        facts.is_causal = returns_tokens(called, result)
    if recorded_model.note_run(this_thread().generator or called):
        cache = cache_of(result) if cache is None and isinstance(result, dict) else cache
        recorded_model.facts["cache"] = None if cache is None else type(cache).__name__
        _record_model()


def _is_compiled(called: Any) -> bool:
    attributes = vars(called)
    return attributes.get("_compiled_call_impl") is not None or hasattr(attributes.get("forward"), "_torchdynamo_orig_callable")


def write_at_exit() -> None:
    if is_silent() and not _broken:
        return
    _record_model()  # if none of its steps was observed
    for thread in list(threads.values()):  # a copy: another one may start
        thread.stop_repeating()
    times.flush(wait=True)
    times.records.clock()
    times.records.flush()


def _record_model() -> None:
    times.records.clock()
    if inferscope_record.rank() == 0:
        guarded(lambda: recorded_model.record(times.records, _torch), "recording the model")
