"""Programs around a module without tokens; the argument is a function's name. Each prints its result."""

import sys

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.conv = nn.GroupNorm(4, width), nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x):
        return x + self.conv(nn.functional.silu(self.norm(x)))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.head, self.tail = nn.Conv2d(4, 16, 3, padding=1), nn.Conv2d(16, 4, 3, padding=1)
        self.time, self.down, self.up = nn.Linear(1, 16), Block(16), Block(16)

    def forward(self, x, time):
        x = self.head(x) + self.time(time[:, None])[:, :, None, None]
        small = self.down(nn.functional.avg_pool2d(x, 2))
        return self.tail(self.up(x + nn.functional.interpolate(small, scale_factor=2)))


class TextEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.layer = nn.Embedding(64, 16), nn.Linear(16, 16)

    def forward(self, ids):
        return self.layer(self.embed(ids))


def denoise(unet, steps=5, batch=2):
    x = torch.linspace(-1, 1, batch * 4 * 64).view(batch, 4, 8, 8)
    for step in range(steps):
        x = x - 0.1 * unet(x, torch.full((batch,), float(step)))
    return x


def denoising():
    unet, decoder = UNet().eval(), nn.Sequential(nn.Conv2d(4, 8, 3), nn.SiLU(), nn.Conv2d(8, 3, 3)).eval()
    for _ in range(2):
        print(decoder(denoise(unet)).double().sum())
    print(denoise(unet, batch=1).double().sum())


def after_text():
    encoder, unet = TextEncoder().eval(), UNet().eval()
    print(encoder(torch.arange(6).view(1, 6)).double().sum(), denoise(unet, 8).double().sum())


def blocks():
    """The program is the model: it calls parts one after the other."""
    parts = [Block(16).eval() for _ in range(3)]
    for _ in range(3):
        x = torch.linspace(-1, 1, 16 * 64).view(1, 16, 8, 8)
        for part in parts:
            x = part(x)
        print(x.double().sum())


def two_in_turn():
    control, unet = UNet().eval(), UNet().eval()
    x = torch.linspace(-1, 1, 4 * 64).view(1, 4, 8, 8)
    for step in range(4):
        time = torch.full((1,), float(step))
        x = x - 0.1 * unet(x + control(x, time), time)
    print(x.double().sum())


def training():
    unet = UNet().train()
    with torch.enable_grad():
        for _ in range(4):
            denoise(unet, 1).square().mean().backward()
    print(sum(p.grad.double().sum() for p in unet.parameters()))


torch.set_num_threads(1)
torch.manual_seed(0)
with torch.no_grad():
    globals()[sys.argv[1]]()
