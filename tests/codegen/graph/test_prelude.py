"""The precompiled header: it serves every source. Where it does not, the compiler is called again without it, which is
slower and would go unnoticed.

Costs seven compilations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynagrad as dg
from dynagrad.runtime.compiling import compilation


def looped(x: Any) -> Any:
    n = 0
    while np.sum(x * x) < 100.0:
        x = x * 1.5 + np.sin(x)
        n += 1
    return np.sum(x) + n


def matrices(x: Any) -> Any:
    a = np.outer(x, x) + np.eye(4)
    return np.linalg.det(a) + np.sum(np.linalg.solve(a, x)) + np.sum(np.linalg.cholesky(a) @ a)


def arrays(x: Any) -> Any:
    return np.sum(np.sort(x) * np.cumsum(x)) + np.max(x) + np.prod(x[::2]) + np.sum(np.where(x > 2.0, x, x / 3.0))


def recursive(x: Any) -> Any:
    return x[0] if len(x) == 1 else recursive(x[: len(x) // 2]) * np.tanh(recursive(x[len(x) // 2 :]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of compiled programs that begins empty."""
    return tmp_path_factory.mktemp("programs")


@pytest.mark.parametrize("function", [looped, matrices, arrays, recursive])
def test_it_is_taken(function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    run, with_it = compilation._run, list[bool]()
    x = np.array([1.0, 2.5, 3.0, 0.5])

    def noted(command: Sequence[str], *rest: Any, **options: Any) -> tuple[int, str]:
        status, said = run(command, *rest, **options)
        assert status == 0, said
        if "-shared" not in command:  # the linker
            with_it.append("-include-pch" in command)
        return status, said

    monkeypatch.delenv("DYNAGRAD_CXX", raising=False)  # g++ keeps no such header
    monkeypatch.setenv("DYNAGRAD_CACHE", str(folder))
    dg.compile(lambda x: x / 3.0)(x)  # beside the first one the header is made, and what all are linked with
    monkeypatch.setattr(compilation, "_run", noted)
    assert dg.compile(dg.grad(function))(x) == pytest.approx(dg.grad(function)(x))
    assert with_it == [True]
