"""The two programs that the paper prints, as printed, with shorter comments."""

FIGURE_1 = """
:- valtype(term, real).  % declares that all item values are real numbers
constit(X,I,K) += rewrite(X,W) * word(W,I,K).  % a constituent is either a word ...
constit(X,I,K) += rewrite(X,Y,Z) * constit(Y,I,J) * constit(Z,J,K).  % ... or two adjacent subconstituents
goal += constit(s,0,N) * end(N).  % a parse is any s constituent that covers the input string
"""

FIGURE_2 = """
need(s,0) = 1.  % begin by looking for an s that starts at position 0
constit(Nonterm/Needed,I,I) += SIDE(need(Nonterm,I)) * rewrite(Nonterm,Needed).  % traditional predict step
constit(Nonterm/Needed,I,K) += constit(Nonterm/cons(W,Needed),I,J) * word(W,J,K).  % scan
constit(Nonterm/Needed,I,K) += constit(Nonterm/cons(X,Needed),I,J) * constit(X/nil,J,K).  % complete
goal += constit(s/nil,0,N) * end(N).
need(Nonterm,J) += constit(_/cons(Nonterm,_),_,J).  % underscore matches anything
"""
