"""Published runs of prompts, which the constants of prefill in speed.yaml were fitted to."""

from __future__ import annotations

from dataclasses import dataclass

from clusterctl.model import Split, Workload
from clusterctl.planning.memory import MemoryModel
from clusterctl.planning.prefill import prefill_speed
from clusterctl.planning.split import choose_split
from tests.unit.synthetic import GIB, expert_layer, header, offer

N_LAYER = 8


@dataclass(frozen=True)
class Device:
    """A kind of device, by its data sheet."""

    name: str
    tflop_s: float
    gb_s: float


@dataclass(frozen=True)
class Model:
    """Weights in 10^9, and bytes for each: what is no expert, all experts, and which part of them is in use."""

    name: str
    dense: float
    bytes_per_weight: float
    experts: float = 0
    used: float = 0


@dataclass(frozen=True)
class Run:
    """So many tokens per second on one device, or on `devices` of a kind over RPC, equally split."""

    device: Device
    model: Model
    tok_s: float
    micro_batch: int = 512
    devices: int = 1

    @property
    def name(self) -> str:
        return f"{self.model.name}, {self.devices} {self.device.name}"

    def estimated_tok_s(self) -> float:
        memory, split = self.planned()
        speed = prefill_speed(memory, split).tok_s
        assert speed is not None
        return speed

    def planned(self) -> tuple[MemoryModel, Split]:
        part = self.model
        own = expert_layer(
            int((part.dense + part.experts) * 1e9 / N_LAYER),
            int((part.dense + part.experts * part.used) * 1e9 / N_LAYER),
            part.bytes_per_weight,
        )
        offers = [
            offer(
                f"n{number}", 500 * GIB, gb_s=self.device.gb_s, tflop_s=self.device.tflop_s, is_local=number == 0
            )
            for number in reversed(range(self.devices))
        ]
        memory = MemoryModel(header([own] * N_LAYER), Workload(context=8192, batch_physical=self.micro_batch))
        layers = {own.node: N_LAYER // self.devices for own in offers}
        return memory, choose_split(memory, offers, "manual", layers=layers)


STRIX = Device("Strix Halo", 59.4, 256)
XTX = Device("RX 7900 XTX", 122.8, 960)
RX9070 = Device("RX 9070 XT", 195, 640)
RTX3090 = Device("RTX 3090", 142, 936)

LLAMA_8B = Model("Llama 8B", 6.98, 0.6)
REAP_Q8 = Model("MiniMax-M2.5 REAP Q8_0", 2.76, 1.06, 135.2, 8 / 154)
REAP_Q4 = Model("MiniMax-M2.5 REAP Q4_K_M", 2.76, 0.6, 135.2, 8 / 154)
GPT_OSS_20B = Model("gpt-oss-20b", 0.64, 0.53, 19.1, 4 / 32)
GEMMA_26B = Model("Gemma 4 26B-A4B Q4", 2.2, 0.6, 22.3, 8 / 128)
CODER = Model("Qwen3-Coder-Next-80B", 1.74, 0.6, 77.3, 10 / 512)

VISORCRAFT = (
    Run(STRIX, Model("Llama 2 7B Q4_K_M, Vulkan", 6.48, 0.6), 1074),
    Run(STRIX, Model("Qwen2.5 14B Q4_K_M, Vulkan", 13.2, 0.6), 600),
    Run(STRIX, Model("Qwen2.5 32B Q4_K_M, Vulkan", 31.2, 0.6), 242),
    Run(STRIX, Model("Llama 3.1 70B Q4_K_M, Vulkan", 68.5, 0.6), 81.6),
    Run(STRIX, Model("Llama 3.1 70B Q4_K_M, ROCm", 68.5, 0.6), 123.9),
    Run(STRIX, Model("Qwen3-30B-A3B Q4_K_M", 0.92, 0.6, 29.0, 8 / 128), 1142),
    Run(STRIX, CODER, 531),
    Run(STRIX, REAP_Q4, 250.5),
    Run(STRIX, REAP_Q4, 272, devices=2),
    Run(STRIX, REAP_Q8, 332.4, devices=2),
    Run(STRIX, Model("Qwen3.5-397B-A17B Q4_K_XL", 7.76, 0.57, 386.6, 10 / 512), 147.6, devices=2),
)
KYUZ0 = (
    Run(STRIX, Model("Llama 2 7B Q4_0, ROCm", 6.48, 0.56), 1545),
    Run(STRIX, Model("Ministral 14B BF16", 12.2, 2), 801),
    Run(STRIX, Model("Qwen3.6-27B Q8_K_XL", 24.8, 1.2), 367),
    Run(STRIX, Model("Gemma 4 31B Q4_K_XL", 29.3, 0.6), 323),
    Run(STRIX, GEMMA_26B, 1329),
    Run(STRIX, Model("Qwen3.6-35B-A3B Q4_K_XL", 1.43, 0.62, 32.2, 8 / 256), 1120),
    Run(STRIX, Model("Qwen3.6-35B-A3B Q8_K_XL", 1.43, 1.1, 32.2, 8 / 256), 1094),
    Run(STRIX, Model("MiniMax-M2.7 Q3_K_S", 2.76, 0.41, 224.7, 8 / 256), 243),
    Run(STRIX, Model("Qwen3.5-122B-A10B Q5_K_XL", 4.5, 0.75, 116.0, 8 / 256), 337),
    Run(STRIX, Model("gpt-oss-120b", 0.96, 0.53, 114.7, 4 / 128), 720),
    Run(STRIX, GPT_OSS_20B, 1786),
    Run(STRIX, Model("GLM-4.6 Q4_K_XL", 15.2, 0.57, 335.9, 8 / 160), 101.8, devices=2),
    Run(STRIX, Model("MiniMax-M2 Q6_K_XL", 2.76, 0.85, 224.7, 8 / 256), 172.8, devices=2),
)
PULL_REQUESTS = (
    Run(Device("M2 Ultra", 27.2, 800), Model("Llama 7B Q4_K_M", 6.48, 0.6), 1028),
    Run(RTX3090, Model("Llama 8B Q5_0", 6.98, 0.69), 3655),
    Run(Device("RTX 4090", 330, 1008), LLAMA_8B, 9267),
    Run(Device("PRO W7900", 122.6, 864), Model("Llama 8B Q3_K_S", 6.98, 0.45), 1995),
    Run(Device("A100", 312, 1555), Model("Qwen3.6-27B Q8_0", 24.8, 1.06), 1172, micro_batch=256),
    Run(Device("R9700", 191, 640), Model("Llama 8B Q5_K_S", 6.98, 0.7), 4180, micro_batch=1024),
    Run(STRIX, Model("Qwen3-Coder-Next-80B Q8_K_XL", 1.74, 1.1, 77.3, 10 / 512), 651.5, devices=2),
    Run(RTX3090, GEMMA_26B, 3734),
    Run(Device("MI100", 184.6, 1229), Model("Qwen3.5-35B-A3B Q4_0", 1.43, 0.56, 32.2, 8 / 256), 2042),
    Run(XTX, Model("Gemma 4 26B-A4B Q6_K", 2.2, 0.82, 22.3, 8 / 128), 3198),
    Run(XTX, GPT_OSS_20B, 4696),
    Run(XTX, LLAMA_8B, 3227),
    Run(Device("MI50", 26.5, 1024), Model("Llama 8B Q4_0", 6.98, 0.56), 1083),
)
OTHERS = (
    Run(RX9070, LLAMA_8B, 4802),
    Run(RX9070, GEMMA_26B, 4140),
    Run(Device("M1 Ultra", 21, 800), Model("Llama 3.2 3B Q4_K_M", 2.82, 0.62), 2143),
    Run(Device("RTX 3080", 119, 760), LLAMA_8B, 3807),
    Run(Device("GB10", 125, 273), GPT_OSS_20B, 3611, micro_batch=2048),
)
FITTED = (*VISORCRAFT, *KYUZ0, *PULL_REQUESTS, *OTHERS)
