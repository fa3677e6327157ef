"""`dynagrad.numpy` and `dynagrad.math` have all names of numpy and `math`: the originals, outside of derivatives.

Their values under a derivative are in `eager/mutation/test_arrays.py` and `eager/names/test_numpy_names.py`.
mypy is asked, too, which costs a second or two more where it has not looked at the package yet.
"""

from __future__ import annotations

import inspect
import math
import pickle

import numpy
import pytest

import dynagrad.math
import dynagrad.numpy
import dynagrad.numpy as np
from dynagrad.eager.names.numpy_names import ORIGINALS
from type_checks import said_of


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [(dynagrad.numpy, numpy), (dynagrad.numpy.linalg, numpy.linalg), (dynagrad.math, math)],
    ids=["numpy", "linalg", "math"],
)
def test_all_public_names_are_there(ours, theirs):
    public = [name for name in dir(theirs) if not name.startswith("_")]
    for name in getattr(theirs, "__all__", public):
        mine, original = getattr(ours, name), getattr(theirs, name)
        if isinstance(mine, type(numpy)):
            continue
        assert mine is original or ORIGINALS.get(mine) is original or mine.__wrapped__ is original, name
        if inspect.isroutine(mine):
            assert mine.__doc__ == original.__doc__ and mine.__name__ == original.__name__, name
    assert set(getattr(theirs, "__all__", public)) <= set(dir(ours))
    with pytest.raises(AttributeError):
        ours.there_is_no_such_name  # noqa: B018


def test_star_import_and_pickles():
    names: dict[str, object] = {}
    exec("from dynagrad.numpy import *\nfrom dynagrad.math import hypot", names)
    assert names["zeros"] is np.zeros and names["hypot"](3, 4) == 5.0
    for function in (np.zeros, np.sum, np.linalg.norm, dynagrad.math.exp):
        assert pickle.loads(pickle.dumps(function)) is function
    assert "axis" in inspect.signature(np.sum).parameters


@pytest.mark.skipif(numpy.__version__ < "2", reason="types of numpy 1 do not list what `import *` has: Any")
def test_types_are_those_of_numpy(tmp_path):
    found = said_of(
        "import dynagrad.math as math\n"
        "import dynagrad.numpy as np\n"
        "a = np.zeros(3)\n"
        "reveal_type(a)\n"
        "reveal_type(math.exp(1.0))\n"
        "np.sum(a, axes=1)\n",
        tmp_path,
    )
    assert 'ndarray[tuple[int], dtype[float64]]"' in found.replace("numpy.", "").replace("builtins.", "")
    assert 'Revealed type is "float"' in found.replace("builtins.", "")
    assert "No overload variant" in found and "sum" in found
