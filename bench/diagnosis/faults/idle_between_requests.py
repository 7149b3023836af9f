"""The server polls for new requests every 10 ms, so the GPU waits between two; repaired: it takes them from a queue at once."""

import time

from case import Case, Marker, wait
from decoder import Decoder, Shape, graphed, random_tokens, sized


def prepare(variant: str, device: str) -> Case:
    batch, context = (256, 128) if device != "cpu" else (2, 8)
    shape = sized(Shape(), device)
    model = Decoder(shape, batch, context, device)
    model.fill_cache()
    step = graphed(model.decode, device)
    tokens = random_tokens(max(batch // 32, 1), 512 if device != "cpu" else 8, shape.vocab, device)
    requests = 4

    def whole(mark: Marker) -> None:
        for request in range(requests):
            with mark("prefill", request):
                model.prefill(tokens)
                wait(device)
            for index in range(4):
                with mark("decode", index):
                    step()
            wait(device)
            if variant == "fault":
                time.sleep(0.010)

    return Case(
        "decode", requests, whole=whole, batch=batch, new_tokens=batch, context=batch * (context + 1), model=shape.config()
    )
