"""The workloads and some examples as PyTorch programs, on the parameters of their HLO files in order."""


def _programs():
    try:
        import torch
    except ImportError:
        return {}
    f32, bf16 = torch.float32, torch.bfloat16

    def softmax(x):
        return torch.softmax(x.to(f32), -1).to(x.dtype)

    def gelu(x, cubic, scale):
        return x * ((torch.tanh((x + x * x * x * cubic) * scale) + 1) * 0.5)

    def norm(x, epsilon):
        centred = x - x.mean(-1, keepdim=True)
        return centred * torch.rsqrt((centred * centred).mean(-1, keepdim=True) + epsilon)

    def rms(x, epsilon, dim=-1):
        return x * torch.rsqrt((x * x).mean(dim, keepdim=True) + epsilon)

    def turned(x, cos, sin):
        x = x.to(f32)
        a, b = x.chunk(2, -1)
        return (x * cos[None, :, None] + torch.cat((-b, a), -1) * sin[None, :, None]).to(bf16)

    def add_rms_norm(x, residual, weight):
        h = x + residual
        return h, rms(h.to(f32), 1e-6).to(bf16) * weight

    def batch_norm(x, weight, bias):
        mean = x.mean((0, 2, 3))
        centred = x - mean[None, :, None, None]
        variance = (centred * centred).mean((0, 2, 3))
        scale = torch.rsqrt(variance + 1e-5) * weight
        return centred * scale[None, :, None, None] + bias[None, :, None, None], mean, variance

    def layer_norm_backward(x, dy, weight):
        x, dy, weight = x.to(f32), dy.to(f32), weight.to(f32)
        centred = x - x.mean(-1, keepdim=True)
        inverse = torch.rsqrt((centred * centred).mean(-1, keepdim=True) + 1e-5)
        normal, g = centred * inverse, dy * weight
        dx = (g - g.mean(-1, keepdim=True) - normal * (g * normal).mean(-1, keepdim=True)) * inverse
        return dx.to(bf16), (dy * normal).sum(0).to(bf16), dy.sum(0).to(bf16)

    def converts(x, scale):
        return x.to(bf16).to(f32), torch.clamp(x * scale, -448, 448).to(torch.float8_e4m3fn)

    def cross_entropy(logits, labels):
        return torch.nn.functional.cross_entropy(logits.to(f32), labels.long())

    return {
        "add": lambda x, y: x + y,
        "exp": torch.exp,
        "gelu": lambda x: gelu(x, 0.044715, 0.797884583),
        "swiglu": lambda a, b: torch.nn.functional.silu(a) * b,
        "bias_dropout_residual": lambda x, r, b, m: torch.where(m, (x + b) * 1.25, 0) + r,
        "scale_bias_relu": lambda x, s, b: torch.relu(x * s + b),
        "converts": converts,
        "softmax": softmax,
        "softmax_long": softmax,
        "softmax_small": softmax,
        "layer_norm": lambda x, w, b: norm(x.to(f32), 1e-5).to(torch.float16) * w + b,
        "rms_norm": lambda x, w: rms(x.to(f32), 1e-6).to(bf16) * w,
        "rms_norm_channels": lambda x: rms(x, 1e-6, 1),
        "add_rms_norm": add_rms_norm,
        "batch_norm": batch_norm,
        "layer_norm_backward": layer_norm_backward,
        "cross_entropy": cross_entropy,
        "column_sum": lambda x: x.sum(0, dtype=f32).to(bf16),
        "full_sum": lambda x: x.sum(),
        "row_reductions": lambda x: (x.sum(-1), *torch.max(x, -1)),
        "transpose": lambda x: x.T.contiguous(),
        "transpose_heads": lambda x: x.transpose(1, 2).contiguous(),
        "transpose_reduce": lambda x: (x * x).sum(2).permute(0, 2, 1).contiguous(),
        "rope": lambda cos, sin, q, k: (turned(q, cos, sin), turned(k, cos, sin)),
        "embedding": lambda table, ids, positions: table[ids] + positions,
        "cumsum": lambda x: torch.cumsum(x, -1),
        "examples/gelu": lambda x: gelu(x, 0.044708, 0.79785),
        "examples/gelu_f32": lambda x: gelu(x, 0.044715, 0.797884583),
        "examples/swiglu": lambda gate, up: gate * torch.sigmoid(gate) * up,
        "examples/bias_relu": lambda x, b: torch.relu(x.to(f32) + b).to(bf16),
        "examples/transpose": lambda x: (x * 0.125).T.contiguous(),
    }


PROGRAMS = _programs()
