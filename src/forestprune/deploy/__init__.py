"""Small models where they must run: as C, as ONNX, as treelite's."""

from forestprune.deploy.c_header import CHeader, to_c
from forestprune.deploy.onnx_model import to_onnx
from forestprune.deploy.treelite_model import to_treelite

__all__ = ["CHeader", "to_c", "to_onnx", "to_treelite"]
