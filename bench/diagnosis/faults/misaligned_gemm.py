"""Hidden and intermediate sizes are odd, so that no matrix is aligned to 16 bytes; repaired: both are padded to the
next multiple of 64.
"""

from case import Case
from decoder import Decoder, Shape, random_tokens, sized


def prepare(variant: str, device: str) -> Case:
    batch, length = (4, 1024) if device != "cpu" else (2, 16)
    odd = Shape(hidden=4095, inner=11007, layers=2)
    shape = sized(odd if variant == "fault" else Shape(hidden=4096, inner=11008, layers=2), device)
    model = Decoder(shape, batch, length, device)
    tokens = random_tokens(batch, length, shape.vocab, device)
    return Case(
        "prefill",
        3,
        lambda _: model.prefill(tokens),
        synchronize=True,
        batch=batch,
        new_tokens=batch * length,
        context=batch * length,
        model=shape.config(),
    )
