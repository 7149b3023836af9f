"""Pure Python between two steps (a scheduler that builds block tables token by token) takes longer than the GPU's
step; repaired: the tables are cached. A step is a CUDA graph in both.
"""

from typing import Dict, List

from case import Case
from decoder import Decoder, Shape, graphed, sized


def block_tables(sequences: int, tokens: int, block: int) -> Dict[int, List[int]]:
    tables: Dict[int, List[int]] = {}
    for sequence in range(sequences):
        table: List[int] = []
        for token in range(tokens):
            if token % block == 0:
                table.append((sequence * 7919 + token // block * 31) % 65536)
        tables[sequence] = table
    return tables


def prepare(variant: str, device: str) -> Case:
    batch, context = (256, 128) if device != "cpu" else (2, 8)
    shape = sized(Shape(), device)
    model = Decoder(shape, batch, context, device)
    model.fill_cache()
    step = graphed(model.decode, device)
    cached_tables = block_tables(batch, context * 8, 16)

    def between(index: int) -> None:
        if variant == "fault":
            block_tables(batch, context * 8, 16)
        else:
            cached_tables[index % batch].append(index)

    return Case(
        "decode", 8, lambda _: step(), between=between, batch=batch, new_tokens=batch, context=batch * (context + 1), model=shape.config()
    )
