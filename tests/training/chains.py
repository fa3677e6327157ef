"""A hidden Markov model, which several tests train."""

HMM = """
:- semiring log.
:- distribution init(S).  :- distribution trans(S,T) given S.  :- distribution emit(S,W) given S.
alpha(S,0) += init(S) * emit(S,W) * word(W,0).
alpha(T,J) += alpha(S,I) * trans(S,T) * emit(T,W) * word(W,J) for J = I+1.
goal += alpha(_,N) * last(N).
"""
