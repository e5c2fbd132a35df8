"""Small and fast forms of an encoder (ONNX graphs, int8, fewer dimensions, token tables), and nearest neighbours."""
