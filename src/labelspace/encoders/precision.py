"""Number format and device, chosen at run time."""

import functools
import platform
from pathlib import Path

import torch

from labelspace.errors import ConfigError

# Names of native bfloat16 arithmetic in /proc/cpuinfo: x86 (AVX-512, AMX) and Arm.
_NATIVE_BFLOAT16 = ("avx512_bf16", "amx_bf16", "bf16")


def choose_device(device: str) -> torch.device:
    """Return the requested device; `"auto"` takes CUDA, then Apple's GPU, then the CPU.

    Raises:
        ConfigError: torch does not know the device, or this machine does not have it.
    """
    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        chosen = torch.device(device)
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError, ValueError) as error:
        raise ConfigError(f"device {device!r} is not available on this machine; use 'auto' or 'cpu'.") from error
    return chosen


def choose_dtype(dtype: str, device: torch.device) -> torch.dtype:
    """Return the number format of the encoder's matrix products.

    Args:
        dtype: `"float32"`, `"bfloat16"`, or `"auto"`: bfloat16 if the device computes in it natively. Elsewhere
            bfloat16 is emulated and slower than float32.
        device: where the encoder runs.
    """
    if dtype == "auto":
        return torch.bfloat16 if has_native_bfloat16(device) else torch.float32
    return torch.bfloat16 if dtype == "bfloat16" else torch.float32


def has_native_bfloat16(device: torch.device) -> bool:
    """Return whether bfloat16 is native, and so faster than float32, on `device`."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and _cpu_has_bfloat16()


@functools.cache
def _cpu_has_bfloat16() -> bool:
    # torch reports the instruction sets it was built for, not the processor's; the kernel reports those.
    if platform.system() != "Linux":
        return False
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    for line in text.splitlines():
        if line.startswith(("flags", "Features")):
            native = not set(_NATIVE_BFLOAT16).isdisjoint(line.split())
            # ATEN_CPU_CAPABILITY can limit torch to less than an x86 processor offers.
            held = line.startswith("flags") and torch.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2")
            return native and not held
    return False
