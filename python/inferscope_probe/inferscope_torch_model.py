"""Which model of transformers a watched program built, as the `model` line of its record."""

import functools
import sys
import weakref
from typing import Any, Callable, Dict, Optional

from inferscope_after_import import guarded
from inferscope_record import Recorder


class SeenModel:
    """The first model that ran, where its steps are watched (inferscope_hooks.py); else the first that was built, which is the
    outermost one, for its parts are built inside."""

    def __init__(self) -> None:
        self._model: Optional[Callable[[], Any]] = None
        self._config: Dict[str, Any] = {}
        self._ran = False
        self._recorded = False

    def watch(self, modeling: Any) -> None:
        """`modeling`: transformers.modeling_utils, just imported."""
        construct = modeling.PreTrainedModel.__init__

        @functools.wraps(construct)
        def init(model: Any, *args: Any, **kwargs: Any) -> None:
            construct(model, *args, **kwargs)
            if self._model is None:
                guarded(lambda: self._take(model), "reading the model's config")

        modeling.PreTrainedModel.__init__ = init

    def _take(self, model: Any) -> None:
        self._model = weakref.ref(model)
        self._config = model.config.to_dict()

    def ran(self, model: Any) -> bool:
        """-> whether it is the first that ran"""
        if self._ran:
            return False
        self._ran = True
        self._take(model)
        return True

    def record(self, records: Recorder, torch: Any) -> None:
        """Writes the line, once; nothing where no model was built."""
        model = self._model() if self._model is not None else None
        if not self._config or self._recorded:
            return
        self._recorded = True
        parameters = list(model.parameters()) if model is not None else []
        config_dtype = self._config.get("dtype") or self._config.get("torch_dtype") or "unknown"
        dtype = str(parameters[0].dtype if parameters else config_dtype).replace("torch.", "")
        quantization = (self._config.get("quantization_config") or {}).get("quant_method")
        records.model(
            name=str(self._config.get("_name_or_path") or self._config.get("model_type") or "unknown"),
            config=self._config,
            dtype=dtype,
            device=str(parameters[0].device) if parameters else "unknown",
            weight_bytes=sum(p.numel() * p.element_size() for p in parameters) or None,
            quantization=None if quantization is None else str(quantization),
            engine_version=getattr(sys.modules.get("transformers"), "__version__", None),
            threads=int(torch.get_num_threads()),
        )
