"""The model line of models with weights elsewhere: divided among ranks, or offloaded."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python" / "inferscope_probe"))

CONFIG = dict(
    hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=100
)


def total_bytes(model):
    from inferscope_torch_model import list_weights

    return sum(tensor["bytes"] * tensor["count"] for tensor in list_weights(model))


class Lines:
    """Collects the model line."""

    def model(self, **line):
        self.line = line


class ModelFactsTest(unittest.TestCase):
    def test_offloaded_weights_are_on_no_device_between_their_uses(self):
        import torch
        from inferscope_torch_model import RecordedModel
        from transformers import LlamaConfig, LlamaForCausalLM

        model = LlamaForCausalLM(LlamaConfig(**CONFIG))
        expected = total_bytes(model)
        for module in model.modules():
            for name, parameter in list(module._parameters.items()):
                if parameter is not None:
                    module._parameters[name] = torch.nn.Parameter(parameter.to("meta"), requires_grad=False)
        recorded, lines = RecordedModel(), Lines()
        recorded.note_run(model)
        recorded.record(lines, torch)
        self.assertEqual(lines.line["device"], "cpu")
        self.assertGreater(lines.line["weight_bytes"], expected)

    def test_weights_have_the_bytes_of_all_ranks_if_they_are_sharded(self):
        import torch.distributed as dist
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        from torch.testing._internal.distributed.fake_pg import FakeStore
        from transformers import LlamaConfig, LlamaForCausalLM

        model = LlamaForCausalLM(LlamaConfig(**CONFIG))
        expected = total_bytes(model)
        self.assertEqual(expected, 4 * sum(parameter.numel() for parameter in model.parameters() if parameter.dim() > 1))
        dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
        try:
            mesh = init_device_mesh("cpu", (2,))
            for layer in model.model.layers:
                fully_shard(layer, mesh=mesh)
            fully_shard(model, mesh=mesh)
            self.assertEqual(tuple(model.lm_head.weight.to_local().shape), (50, 32))
            self.assertEqual(total_bytes(model), expected)
        finally:
            dist.destroy_process_group()


if __name__ == "__main__":
    unittest.main()
