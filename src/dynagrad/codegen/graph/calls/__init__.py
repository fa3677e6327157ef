"""Operations that are computed by functions of the runtime: which is called for which tag."""
