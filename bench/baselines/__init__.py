from pathlib import Path

from bmq.kernels import KERNELS, cache_by_sources

cache_by_sources(KERNELS, Path(__file__).parent, Path(__file__).parents[1])
