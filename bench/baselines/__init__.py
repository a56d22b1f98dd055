"""The rivals that the service is measured against; no part of the service runs them."""

import importlib
import pkgutil
from pathlib import Path

import bmq.kernels
from bmq.kernels import KERNELS, cache_by_sources

# Numba looks for the folder of its cache when a kernel is defined. So the service's kernels are defined first: they
# stay in the folder of the service, and an edit of a bench compiles none of them anew.
for _module in pkgutil.walk_packages(bmq.kernels.__path__, "bmq.kernels."):
    importlib.import_module(_module.name)
cache_by_sources(KERNELS, Path(__file__).parent, Path(__file__).parents[1])
