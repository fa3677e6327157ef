"""C++ text: of expressions, of graphs (`graph/`), of plans (`rules/`)."""
