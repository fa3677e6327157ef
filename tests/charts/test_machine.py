"""The memory limit of the machine: both versions of control groups, in hierarchies as systems have them (1 s)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

import dynagrad as dg
from dynagrad.charts import machine
from dynagrad.charts.limits import Limits

NO_LIMIT = 2**62
V1_NONE = "9223372036854771712\n"  # what a group without a limit says in version 1

# What /proc/self/cgroup says, the files under /sys/fs/cgroup, and the least limit.
TREES: dict[str, tuple[str, Mapping[str, str], int]] = {
    "2: the group's own": ("0::/box\n", {"box/memory.max": "4096\n"}, 4096),
    "2: of a group around it": ("0::/box/in\n", {"box/memory.max": "4096\n", "box/in/memory.max": "max\n"}, 4096),
    "2: the least of all": ("0::/box/in\n", {"box/memory.max": "8192\n", "box/in/memory.max": "4096\n"}, 4096),
    "2: none": ("0::/box\n", {"box/memory.max": "max\n"}, NO_LIMIT),
    "2: a container's own top": ("0::/\n", {"memory.max": "4096\n"}, 4096),
    "2: a group outside the container": ("0::/../other\n", {"memory.max": "4096\n"}, 4096),
    "2: another group beside it": ("0::/box\n", {"other/memory.max": "4096\n"}, NO_LIMIT),
    "2: a name with a colon": ("0::/a:b\n", {"a:b/memory.max": "4096\n"}, 4096),
    "1: the group's own": ("4:memory:/job\n", {"memory/job/memory.limit_in_bytes": "4096\n"}, 4096),
    "1: of a group around it": (
        "4:memory:/job/step\n",
        {"memory/job/memory.limit_in_bytes": "4096\n", "memory/job/step/memory.limit_in_bytes": V1_NONE},
        4096,
    ),
    "1: none": ("4:memory:/job\n", {"memory/job/memory.limit_in_bytes": V1_NONE}, NO_LIMIT),
    "1: with other controllers": ("4:cpu,memory:/job\n", {"memory/job/memory.limit_in_bytes": "4096\n"}, 4096),
    "1: a container sees its group as the top": (
        "4:memory:/docker/1f2e\n",
        {"memory/memory.limit_in_bytes": "4096\n"},
        4096,
    ),
    "1: no memory controller": ("4:cpu:/job\n", {"memory/job/memory.limit_in_bytes": "4096\n"}, NO_LIMIT),
    "both: memory in 1": (
        "4:memory:/job\n1:name=systemd:/job\n0::/job\n",
        {"memory/job/memory.limit_in_bytes": "4096\n", "unified/job/cgroup.procs": ""},
        4096,
    ),
    "both: memory in 2": ("1:name=systemd:/job\n0::/job\n", {"job/memory.max": "4096\n"}, 4096),
    "nonsense": ("\n0\nmemory\n7:memory\n0::/box\n", {"box/memory.max": "much\n"}, NO_LIMIT),
}


@pytest.mark.parametrize("name", TREES)
def test_the_least_limit_of_the_groups(name: str, tmp_path: Path) -> None:
    groups, files, least = TREES[name]
    (tmp_path / "cgroup").write_text(groups)
    top = tmp_path / "fs"
    for file, text in files.items():
        (top / file).parent.mkdir(parents=True, exist_ok=True)
        (top / file).write_text(text)
    assert min(machine.group_memory(tmp_path / "cgroup", top), NO_LIMIT) == least


def test_where_there_are_no_groups_there_is_no_limit(tmp_path: Path) -> None:
    assert machine.group_memory(tmp_path / "nothing", tmp_path) == NO_LIMIT
    (tmp_path / "cgroup").write_bytes(b"0::/\xff\xfe\n")  # no text at all
    assert machine.group_memory(tmp_path / "cgroup", tmp_path) == NO_LIMIT


def test_the_limit_on_a_chart_is_half_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "group_memory", lambda: 64 << 20)
    whole = machine._installed.__wrapped__()
    assert whole == 64 << 20
    monkeypatch.setattr(machine, "_installed", lambda: whole)
    assert Limits().room == 32 << 20 and Limits(share=4).room == 8 << 20 and Limits(max_bytes=5).room == 5
    with pytest.raises(dg.NotConverged, match="limit on bytes"):
        dg.Program("n(X+1,Y) max= n(X,Y) + 1. n(X,X+1) max= n(X,_). n(0,0) = 0.").run()


@pytest.mark.skipif(not os.path.exists("/proc/self/cgroup"), reason="no control groups here")
def test_this_process_has_memory() -> None:
    assert 1 << 20 < machine.memory() <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
