"""Fuzzes files of facts, in every format: bits flipped, stretches cut, duplicated or overwritten.

One input is one damaged file. What is read of it is run too: a damaged value may still be a value.
"""

from __future__ import annotations

import functools
import random
import tempfile
from pathlib import Path
from typing import Any

import dynagrad as dg
from fuzz.tables import ours


@functools.cache
def program() -> dg.Program:
    return dg.Program("goal += f(_X,_Y).")


@functools.cache
def whole() -> dict[str, bytes]:
    """Good files of every format, by a name that ends as the format does."""
    import pyarrow as pa
    import pyarrow.feather
    import pyarrow.parquet

    texts = ["x", "yy", "ü", "zzz", "x", "a b"] * 3
    numbers = pa.array(range(18), pa.int32())
    viewed = getattr(pa, "string_view", pa.string)()  # which pyarrow has had since 16
    values = pa.array([float(n) / 7 for n in range(18)])
    tables: dict[str, Any] = {
        "plain": pa.table({"a": texts, "b": numbers, "v": values}),
        "coded": pa.table(
            {"a": pa.array(texts).dictionary_encode(), "b": pa.array(texts, pa.large_string()), "v": values}
        ),
        "typed": pa.table(
            {"a": pa.array(texts, viewed), "b": numbers.cast(pa.int64()), "v": values.cast(pa.float32())}
        ),
        "chunked": pa.concat_tables([pa.table({"a": texts, "b": numbers}), pa.table({"a": texts[::-1], "b": numbers})]),
        "listed": pa.table({"a": [["x", "y"], ["z"], []] * 6, "b": numbers, "v": values}),
    }
    made = {}
    with tempfile.TemporaryDirectory() as place:
        for name, table in tables.items():
            for compression in ("uncompressed", "lz4", "zstd"):
                path = Path(place) / f"{name}-{compression}.arrow"
                pa.feather.write_feather(table, path, compression=compression)
                made[path.name] = path.read_bytes()
            path = Path(place) / f"{name}.feather"
            with pa.ipc.new_stream(path, table.schema) as writer:
                writer.write_table(table)
            made[path.name] = path.read_bytes()
            if name != "typed":
                for compression in ("none", "snappy", "zstd"):
                    path = Path(place) / f"{name}-{compression}.parquet"
                    pa.parquet.write_table(table, path, compression=compression)
                    made[path.name] = path.read_bytes()
    rows = [f"{a}\t{b}\t{v}" for a, b, v in zip(texts, range(18), range(18), strict=True)]
    made["plain.tsv"] = "\n".join(rows).encode()
    made["plain.csv"] = "\n".join(rows).replace("\t", ",").encode()
    made["quoted.csv"] = "".join(f'"{a}","{b}, ""x""\n",0.5\n' for a, b in zip(texts, range(18), strict=True)).encode()
    return made


def damaged(data: bytes, draw: random.Random) -> bytes:
    broken = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 8))):
        at = draw.randrange(max(1, len(broken)))
        match draw.randrange(7):
            case 0:
                del broken[at : at + draw.choice((1, 4, 64, len(broken)))]
            case 1:
                broken[at:at] = broken[draw.randrange(max(1, len(broken))) :][: draw.choice((1, 8, 100))]
            case 2:
                broken[at : at + 4] = draw.choice(
                    (b"\xff\xff\xff\xff", b"\0\0\0\0", b"\xff\xff\xff\x7f", b"\0\0\0\x80")
                )
            case 3:
                broken[at : at + 1] = draw.choice((b"\t", b"\n", b",", b'"', b"\r", b"\0", b"\xff", b"e", b"-"))
            case _ if broken:
                broken[min(at, len(broken) - 1)] ^= 1 << draw.randrange(8)
    return bytes(broken)


def check(seed: int) -> str | None:
    """What is wrong, or nothing."""
    draw = random.Random(seed)
    name, data = draw.choice(list(whole().items()))
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / name
        path.write_bytes(damaged(data, draw))
        try:
            facts = dg.read_file(path, "f/2")
            program().run({"f/2": facts}, max_pops=1000)
        except dg.Error as error:
            return ours(error)
    return None
