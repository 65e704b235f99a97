"""Small models where they must run: as C, as ONNX, as treelite's."""
