"""Number format and device: as requested, or the best that the machine supports."""

from pathlib import Path

import pytest
import torch

from labelspace.encoders import precision
from labelspace.encoders.precision import choose_device, choose_dtype, has_native_bfloat16
from labelspace.errors import ConfigError

CPU = torch.device("cpu")


@pytest.fixture
def cpuinfo(monkeypatch: pytest.MonkeyPatch):
    """Fake the kernel's description of the processor."""

    def say(text: str | None, system: str = "Linux", capability: str = "AVX512") -> bool:
        def read(self: Path, **options: object) -> str:
            if text is None:
                raise OSError("no such file")
            return text

        precision._cpu_has_bfloat16.cache_clear()
        with monkeypatch.context() as patch:
            patch.setattr(precision.platform, "system", lambda: system)
            patch.setattr(Path, "read_text", read)
            patch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
            return has_native_bfloat16(CPU)

    yield say
    precision._cpu_has_bfloat16.cache_clear()


def test_a_requested_dtype_is_used():
    assert choose_dtype("float32", CPU) is torch.float32
    assert choose_dtype("bfloat16", CPU) is torch.bfloat16


def test_auto_follows_the_processor():
    expected = torch.bfloat16 if has_native_bfloat16(CPU) else torch.float32
    assert choose_dtype("auto", CPU) is expected


@pytest.mark.parametrize(
    "line", ["flags\t\t: fpu avx512f avx512_bf16 sse", "flags\t: amx_bf16", "Features\t: fp asimd bf16 sve"]
)
def test_native_bfloat16_is_read_from_the_kernel(line: str, cpuinfo):
    assert cpuinfo(f"processor\t: 0\n{line}\n")


@pytest.mark.parametrize("line", ["flags\t\t: fpu avx2 avx512f", "Features\t: fp asimd", "model name\t: bf16 amx_bf16"])
def test_a_processor_without_bfloat16_is_recognised(line: str, cpuinfo):
    assert not cpuinfo(f"processor\t: 0\n{line}\n")


@pytest.mark.parametrize("capability", ["DEFAULT", "AVX2"])
def test_torch_limited_below_avx512_has_no_native_bfloat16(capability: str, cpuinfo):
    assert not cpuinfo("flags\t\t: fpu avx512f avx512_bf16 amx_bf16", capability=capability)
    assert cpuinfo("Features\t: fp asimd bf16", capability="DEFAULT"), "what torch says of an Arm"


def test_without_cpuinfo_there_is_no_native_bfloat16(cpuinfo):
    assert not cpuinfo(None)
    assert not cpuinfo("flags : avx512_bf16", system="Darwin")


def test_auto_device_is_a_gpu_if_there_is_one_else_the_cpu():
    has_gpu = torch.cuda.is_available() or torch.backends.mps.is_available()
    assert (choose_device("auto").type == "cpu") is not has_gpu
    assert choose_device("cpu") == CPU


@pytest.mark.parametrize("device", ["cdua", "cuda:99", ""])
def test_a_missing_device_is_one_clear_error(device: str):
    with pytest.raises(ConfigError, match=f"device '{device}' is not available on this machine; use 'auto' or 'cpu'"):
        choose_device(device)
