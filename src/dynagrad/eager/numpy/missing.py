"""Advice for functions and attributes of numpy that have no derivative here: why, and what to write instead.

A name in neither table gets general advice. Nothing is computed here.
"""

from __future__ import annotations

from ...errors import Error, NotDifferentiable

_COMPLEX = "its result is complex, and derivatives are of reals; keep two parts as reals"
IN_PLACE = "it changes an array in place; use it on an array of dynagrad.numpy, or on a copy such as x.copy()"
_STEP = "its result is piecewise constant; call it on a plain array, outside of the derivative"
_WIDTH = "numbers with derivatives are always of float64: leave the conversion out"
_CLASS = "it makes a plain array of its argument, which has no derivatives"
_GROWS = "the number of elements of its result depends on the values"

WHY: dict[str, str] = {
    # complex numbers
    "np.linalg.eig": f"{_COMPLEX}, or use np.linalg.eigh, for symmetric matrices",
    "np.linalg.eigvals": f"{_COMPLEX}, or use np.linalg.eigvalsh, for symmetric matrices",
    "np.roots": f"{_COMPLEX}, or find a real root with dg.fixed_point",
    "np.poly": "multiply its factors with np.convolve",
    "np.sort_complex": f"{_COMPLEX}, or use np.sort",
    "np.i0": "use dg.special.i0",
    "np.unwrap": "use x + 2 * np.pi * k, with k counted from np.round(np.diff(x) / (2 * np.pi))",
    "np.complex128": f"{_COMPLEX}",
    "np.complex64": f"{_COMPLEX}",
    **dict.fromkeys(("np.float32", "np.float16", "np.float64", "np.double", "np.single", "np.half"), _WIDTH),
    **dict.fromkeys(("np.longdouble", "np.floating"), _WIDTH),
    # classes that make plain arrays of their arguments
    "np.poly1d": f"{_CLASS}: write np.polyval(p, x) with the coefficients p = np.array([...])",
    "np.Polynomial": f"{_CLASS}: write np.polyval(p[::-1], x) with the coefficients p = np.array([...])",
    "np.ndenumerate": f"{_CLASS}: write `for i in np.ndindex(a.shape)`, and a[i]",
    "np.nditer": f"{_CLASS}: write `for i in np.ndindex(a.shape)`, and a[i]",
    "np.broadcast": f"{_CLASS}: write np.broadcast_arrays, or np.broadcast_shapes(a.shape, b.shape)",
    **dict.fromkeys(("np.matrix", "np.asmatrix", "np.bmat"), f"{_CLASS}: write np.array, or np.block, and @"),
    **dict.fromkeys(("np.recarray", "np.record"), f"{_CLASS}: write a dict of arrays"),
    "np.MaskedArray": f"{_CLASS}: write np.where with a mask, and np.sum of it",
    # in place
    "np.copyto": f"{IN_PLACE}; or use np.where, or np.broadcast_to(x, shape) where it was np.full",
    "np.put": f"{IN_PLACE}; or use np.where or np.stack",
    "np.place": f"{IN_PLACE}; or use np.where",
    "np.putmask": f"{IN_PLACE}; or use np.where",
    "np.put_along_axis": f"{IN_PLACE}; or use np.where(np.arange(n) == i, new, x)",
    "np.fill_diagonal": f"{IN_PLACE}; or use np.where(np.eye(n, dtype=bool), new, x)",
    "np.resize": "use np.tile and a slice",
    # sets
    "np.unique": f"{_GROWS}; take x[np.unique(plain, return_index=True)[1]] of the plain values",
    "np.union1d": f"{_GROWS}; join with np.concatenate",
    "np.intersect1d": f"{_GROWS}; choose with x[np.isin(plain, other)]",
    "np.setdiff1d": f"{_GROWS}; choose with x[~np.isin(plain, other)]",
    "np.setxor1d": f"{_GROWS}; choose with x[np.isin(plain, other)]",
    "np.trim_zeros": f"{_GROWS}; use a slice",
    # histograms, polynomials
    "np.histogram2d": "its counts are steps; use np.histogram of flat places, or of plain arrays",
    "np.histogramdd": "its counts are steps; use np.histogram of flat places, or of plain arrays",
    "np.polyadd": "use np.polyval(p, x) + np.polyval(q, x), or add the coefficients",
    "np.polysub": "use np.polyval(p, x) - np.polyval(q, x), or subtract the coefficients",
    "np.polymul": "use np.convolve(p, q)",
    "np.polydiv": "use dg.derivative of np.polyval, or np.linalg.lstsq",
    "np.polyder": "use p[:-1] * np.arange(len(p) - 1, 0, -1), or dg.derivative of np.polyval",
    "np.polyint": "use np.append(p / np.arange(len(p), 0, -1), 0.0)",
    # linear algebra
    "np.linalg.cond": "use the quotient of np.linalg.svd(x, compute_uv=False)[..., 0] and [..., -1]",
    "np.linalg.tensorinv": "use np.linalg.inv of np.reshape",
    "np.linalg.tensorsolve": "use np.linalg.solve of np.reshape",
    "np.einsum_path": "it only looks at shapes; call it on plain arrays of these",
    # other names of functions, which numpy 2 has not
    "np.alltrue": "use np.all",
    "np.sometrue": "use np.any",
    "np.product": "use np.prod",
    "np.cumproduct": "use np.cumprod",
    "np.in1d": "use np.isin",
    "np.msort": "use np.sort(x, axis=0)",
    "np.round_": "use np.round",
    "np.asfarray": "use np.asarray",
    # steps
    "np.frexp": "use np.log2 and np.exp2",
    "np.nextafter": "it moves by one rounding, which has no derivative; add a small number",
    "np.packbits": _STEP,
    "np.unpackbits": _STEP,
    "np.busday_count": _STEP,
    "np.busday_offset": _STEP,
    "np.is_busday": _STEP,
    "np.datetime_as_string": _STEP,
    "np.where": "give it a mask and two arrays",
}
"""Advice by the name of a function."""

FAMILIES: dict[str, str] = {
    "np.fft.": f"{_COMPLEX}; np.cos(2 * np.pi * np.outer(k, n) / N) @ x and the same of np.sin are two parts",
    "np.emath.": "its results may be complex, and derivatives are of reals; use the function of the same name in np",
    "np.unique": f"{_GROWS}; take elements at places found with np.unique of the plain values",
    **dict.fromkeys(
        ("np.bitwise_", "np.invert", "np.left_shift", "np.right_shift", "np.gcd", "np.lcm", "np.ix_")
        + ("np.ravel_multi_index", "np.unravel_index"),
        "it is of whole numbers, and numbers with derivatives are reals",
    ),
    "np.arg": _STEP,
    "np.is": _STEP,
    "np.array": _STEP,
    "np.tril_indices": "it only looks at a shape; give it x.shape",
    "np.triu_indices": "it only looks at a shape; give it x.shape",
    "np.diag_indices": "it only looks at a shape; give it x.shape",
    "np.save": "save the plain result, after the derivative",
}
"""Advice by the beginning of a name."""

_ELSE = "write it with functions that have one, look in dg.special, or give it a rule with dg.custom_rule"


def unknown(name: str) -> NotDifferentiable:
    """The error for a function that has no derivative here.

    >>> str(unknown("np.fft.fft"))[:63]
    'np.fft.fft has no derivative here: its result is complex, and d'
    """
    advice = WHY.get(name)
    if advice is None:
        advice = next((text for start, text in FAMILIES.items() if name.startswith(start)), _ELSE)
    return NotDifferentiable(f"{name} has no derivative here: {advice}")


class NoAttribute(Error, AttributeError):
    """The error for an attribute that numpy's arrays or scalars have, or floats, and numbers here do not."""


_INSTEAD = {
    "as_integer_ratio": "two whole numbers would lose the derivatives; compute with the number itself",
    "fromhex": "write float.fromhex(text)",
    "tobytes": "bytes would lose the derivatives",
    "view": "other bits would lose the derivatives; x.reshape has another shape",
}
"""Advice by the name of an attribute."""


def no_attribute(what: str, name: str, known: bool, place: str) -> NoAttribute:
    """The error for an attribute; `known` says that numpy's function of its name has a derivative.

    >>> str(no_attribute("a number with derivatives", "searchsorted", True, ""))
    'a number with derivatives has no searchsorted: write np.searchsorted(x, ...)'
    """
    otherwise = f"write np.{name}(x, ...)" if known else "ask a plain one for it, outside of the derivative"
    return NoAttribute(f"{what} has no {name}: {_INSTEAD.get(name, otherwise)}{place}")
