"""Keys of arguments: different values have different keys, equal ones the same in every process."""

from __future__ import annotations

import array
import cmath
import collections
import copy
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import math
import os
import pathlib
import pickle
import random
import re
import struct
import subprocess
import sys
import threading
import types
import zoneinfo
from typing import Any

import hypothesis
import numpy
import pytest
from hypothesis import strategies

import sde
from sde import _sde

key = _sde.digest


class Plain:
    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)


class Other(Plain):
    pass


class Liar:
    """Equal to all, of another class, and with properties that tell something else."""

    __hash__ = object.__hash__

    def __init__(self, x: Any) -> None:
        self.x = x

    def __eq__(self, other: object) -> bool:
        return True

    @property
    def __class__(self) -> type:
        return numpy.ndarray

    @property
    def shape(self) -> Any:
        raise RuntimeError("a property ran")


class EmptyLooking(list):
    def __iter__(self) -> Any:
        return iter(())

    def __len__(self) -> int:
        return 0


class EmptyDict(dict):
    def __iter__(self) -> Any:
        return iter(())

    def keys(self) -> Any:
        return ()

    def items(self) -> Any:
        return ()


class ZeroLooking(int):
    def __int__(self) -> int:
        return 0

    def __getnewargs__(self) -> Any:
        return (0,)


class ZeroComplex(complex):
    real = imag = property(lambda self: 0.0)  # type: ignore[assignment]

    def __getnewargs__(self) -> Any:
        return (0j,)


def _scaled(scale: float) -> Any:
    def scaled() -> None: ...

    scaled.scale = scale  # type: ignore[attr-defined]
    return scaled


class Dated(datetime.date):
    pass


class Equal(type):
    """A metaclass whose classes are equal to all."""

    def __eq__(cls, other: object) -> bool:
        return True

    def __hash__(cls) -> int:
        return hash(datetime.timedelta)


class Odd(metaclass=Equal):
    def __init__(self, x: int) -> None:
        self.x = x


class Slots:
    __slots__ = ("__private", "a")

    def __init__(self, a: Any, private: Any) -> None:
        self.a, self.__private = a, private


class Named(collections.namedtuple("Named", "a b")):
    pass


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Shade(enum.Enum):
    RED = 1


class Number(enum.IntEnum):
    ONE = 1


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    a: int
    b: float = 0.0


class WithSetter:
    """Its pickle has a function that sets the state."""

    def __init__(self, setter: Any) -> None:
        self.setter = setter

    def __reduce__(self) -> Any:
        return WithSetter, (None,), 1, None, None, self.setter


def _moved() -> Any:
    made = collections.OrderedDict(a=1, b=2, c=3)
    made.move_to_end("a")
    made.move_to_end("b")
    made.move_to_end("c")
    made.move_to_end("a", last=False)
    made.move_to_end("c", last=False)
    return made


def _dated(note: str) -> Dated:
    made = Dated(2020, 1, 1)
    made.note = note  # type: ignore[attr-defined]
    return made


def _odd() -> list[Any]:
    nan = struct.unpack("<d", b"\1\0\0\0\0\0\xf8\x7f")[0]
    holds_itself: list[Any] = []
    holds_itself.append(holds_itself)
    parent, child = Plain(), Plain()
    parent.child, child.parent = child, parent
    berlin = zoneinfo.ZoneInfo("Europe/Berlin")
    an_hour = datetime.timezone(datetime.timedelta(hours=1), "Europe/Berlin")
    return [
        None, False, True, 0, 1, -1, 2**63, -(2**63), 2**63 - 1, 10**5000, 10**5000 + 1,
        0.0, -0.0, 1.0, math.nan, -math.nan, nan, math.inf, 0j, complex(-0.0, 0.0), complex(0.0, -0.0), 1 + 0j,
        "", "1", "py", "\udc80", "\udc81", "\0", b"", b"1", b"\xed\xb2\x80", bytearray(b"1"), memoryview(b"1"),
        memoryview(b"1").cast("b"), (), [], {}, set(), frozenset(), (1,), [1], {1}, {True}, {1.0}, frozenset({1}),
        [[]], [()], ([],), [None], [0.0], [-0.0], [1, [2]], [[1], 2], [1, 2], {1: 2}, {2: 1}, {"1": 2}, {b"1": 2},
        {"a": 1, "b": 2}, {"b": 2, "a": 1}, {"py": "tuple", "of": [1]}, {"of": [1], "py": "tuple"},
        {"py": "up", "of": 1}, {"$sde::file": 1}, {(): 1}, {"\udc80": 1}, [("a", 1)], [["a", 1]],
        range(3), range(0, 3, 2), slice(3), slice(0, 3), ..., NotImplemented,
        Plain(), Plain(x=1), Plain(x=True), Plain(x=1.0), Plain(y=1), Other(x=1), Plain(x=1, y=2),
        Liar(1), Liar(2), EmptyLooking([1]), EmptyLooking([2]), EmptyLooking(), EmptyDict(a=1), EmptyDict(a=2), ZeroLooking(1), ZeroLooking(2),
        ZeroComplex(1), ZeroComplex(2), _scaled(1), _scaled(2),
        _dated("a"), _dated("b"), Odd(1), Odd(2), Slots(1, 2), Slots(1, 3), Slots(2, 2), Named(1, 2), Named(2, 1),
        Color.RED, Color.BLUE, Color, Number.ONE, Number, Frozen(1), Frozen(1, -0.0), Frozen(2), WithSetter(len), WithSetter(abs), Shade.RED,
        holds_itself, [holds_itself], (holds_itself,), parent, Plain(child=Plain(parent=None)),
        datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1, tzinfo=berlin),
        datetime.datetime(2020, 1, 1, tzinfo=an_hour), datetime.datetime(2020, 10, 25, 2, 30, tzinfo=berlin),
        datetime.datetime(2020, 10, 25, 2, 30, tzinfo=berlin, fold=1), datetime.datetime(2020, 10, 25, 2, 30, fold=1),
        datetime.date(2020, 1, 1), datetime.time(1), datetime.time(1, tzinfo=berlin), datetime.time(1, tzinfo=an_hour),
        datetime.timedelta(1), datetime.timedelta(0, 1), berlin, an_hour,
        decimal.Decimal("1.0"), decimal.Decimal("1.00"), decimal.Decimal("-0"), decimal.Decimal("NaN"),
        decimal.Decimal("sNaN"), decimal.Decimal("NaN1"), fractions.Fraction(1, 3), fractions.Fraction(1),
        pathlib.Path("a"), pathlib.PurePosixPath("a"), pathlib.PureWindowsPath("a"), pathlib.Path("b"),
        collections.OrderedDict(a=1, b=2), collections.OrderedDict(a=1, b=2, c=3), _moved(), collections.OrderedDict(b=2, a=1), collections.defaultdict(int, a=1),
        collections.defaultdict(list, a=1), collections.defaultdict(None, a=1), collections.Counter("a"),
        collections.deque([1]), collections.deque([1], 2), collections.ChainMap({"a": 1}),
        types.MappingProxyType({"a": 1}), types.SimpleNamespace(a=1), array.array("i", [1]), array.array("l", [1]),
        math.sqrt, cmath.sqrt, math.sin, math.fsum, len, str.upper, str.lower, "a".upper, "b".upper, bytes.upper, {}.get, int, float, list[int],
        list[str], functools.partial(int), functools.partial(int, base=2), functools.partial(int, base=3), re.compile("a"),
        re.compile("a", re.I), re.compile(b"a"), lambda x: x, lambda x: x + 1, lambda x, y=1: x, lambda x, y=2: x,
        Plain.__init__, Plain(a=1).__init__, Plain(a=2).__init__, ValueError("a"), ValueError("b"), KeyError("a"),
        numpy, math,
    ]  # fmt: skip


def _arrays() -> list[Any]:
    padded = numpy.dtype([("a", "i1"), ("b", "<f8")], align=True)
    f = numpy.array([[1.0, 2.0], [3.0, 4.0]])
    read_as = [numpy.array([1], kind) for kind in "? i1 u1 i2 u2 <i4 >i4 u4 i8 u8 f2 f4 f8 >f8 g F D G S1 U1 O".split()]
    return [
        *read_as, *[one[0] for one in read_as[:-1] if one.dtype.str[0] != ">"],
        numpy.zeros(0), numpy.zeros((0, 3)), numpy.zeros((3, 0)), numpy.zeros(0, "f4"), numpy.array(1.0), f, f.T,
        f.ravel(), numpy.array([0.0]), numpy.array([-0.0]), numpy.array([math.nan]),
        numpy.array(["2020"], "M8[Y]"), numpy.array(["2020"], "M8[s]"), numpy.array([50], "m8[s]"),
        numpy.array([50], "m8[ms]"), numpy.array(["NaT"], "M8[s]"), numpy.datetime64("2020"), numpy.timedelta64(1, "s"),
        numpy.array(["ab"]), numpy.array(["ab"], "U3"), numpy.array([b"ab"]), numpy.zeros(2, padded),
        numpy.zeros(2, [("a", "i1"), ("b", "<f8")]), numpy.zeros(2, [("a", "i1"), ("c", "<f8")]), numpy.zeros(2, "V3"),
        numpy.zeros(2, numpy.dtype("f8", metadata={"a": 1})), numpy.zeros(2), numpy.array([1.0, None]), numpy.array([1, None]),
        numpy.array([[1], None], object), numpy.ma.array([1, 2], mask=[0, 1]), numpy.ma.array([1, 3], mask=[0, 1]),
        numpy.ma.array([1, 2]), numpy.ma.array([1, 2], fill_value=7), numpy.matrix([[1.0]]), numpy.array([[1.0]]),
        numpy.zeros(1, [("x", "f8")]).view(numpy.recarray), numpy.zeros(1, [("x", "f8")]), numpy.dtype("f8"),
        numpy.dtype("f4"), numpy.sin, numpy.cos, numpy.random.RandomState(1), numpy.random.RandomState(2),
        numpy.random.default_rng(1), numpy.random.default_rng(2), numpy.array(["a"], numpy.dtypes.StringDType()),
        numpy.array(["b"], numpy.dtypes.StringDType()), numpy.zeros(2, "3f4"), [1.0, 2.0], numpy.array([1.0, 2.0]),
        numpy.array([1, 2], "u1"), b"\1\2",
    ]  # fmt: skip


def test_no_two_different_values_have_one_key() -> None:
    known: dict[bytes, Any] = {}
    for value in [*_odd(), *_arrays()]:
        made = key(value)
        if made in known:
            pytest.fail(f"{type(value)} and {type(known[made])} have one key: {str(value)[:80]}")
        known[made] = value


def test_keys_are_the_same_in_every_process() -> None:
    program = (
        f"import sys; sys.path[:0] = [{str(pathlib.Path(__file__).parent)!r}]; import test_keys\n"
        "for value in [*test_keys._odd(), *test_keys._arrays(), set('abcdefgh'), {frozenset('abc'), frozenset('bcd')}]:\n"
        "    print(test_keys.key(value).hex())"
    )
    told = []
    for seed in ("1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        run = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=300)
        assert run.returncode == 0, run.stderr
        told.append(run.stdout.split())
    assert told[0] == told[1]


def test_equal_values_have_one_key() -> None:
    one = numpy.arange(12.0).reshape(3, 4)
    wide = numpy.zeros((3, 8))
    wide[:, ::2] = one
    read_only = one.copy()
    read_only.flags.writeable = False
    assert len({key(one), key(wide[:, ::2]), key(read_only), key(numpy.asfortranarray(one))}) == 1
    assert key(one + 1j) == key(numpy.asfortranarray(one + 1j)) != key((one + 1j).T)
    padded = numpy.frombuffer(b"\1" * 32, numpy.dtype([("a", "i1"), ("b", "<i8")], align=True)).copy()
    zero = numpy.frombuffer(b"\1" + b"\0" * 7 + b"\1" * 8 + b"\1" + b"\0" * 7 + b"\1" * 8, padded.dtype)
    padded = numpy.frombuffer(b"\1" * 32, padded.dtype)
    assert zero.tobytes() != padded.tobytes() and key(zero) == key(padded)
    shared = [1]
    assert key([shared, shared]) == key([[1], [1]])
    assert key(copy.deepcopy(Plain(x=[1]))) == key(Plain(x=[1]))
    capitals = decimal.getcontext().copy()
    before = key(decimal.Decimal("1E+30"))
    capitals.capitals = 0
    with decimal.localcontext(capitals):
        assert key(decimal.Decimal("1E+30")) == before


_atoms = strategies.one_of(
    strategies.none(), strategies.booleans(), strategies.integers(), strategies.floats(), strategies.complex_numbers(),
    strategies.text(strategies.characters(), max_size=4), strategies.binary(max_size=4),
    strategies.sampled_from([Color.RED, Number.ONE, numpy.float64(1), numpy.int8(1), ()]),
)  # fmt: skip
_hashable = strategies.recursive(
    _atoms,
    lambda of: strategies.one_of(strategies.tuples(of), strategies.tuples(of, of), strategies.frozensets(of, max_size=3)),
    max_leaves=4,
)
_values = strategies.recursive(
    _hashable,
    lambda of: strategies.one_of(
        strategies.lists(of, max_size=3), strategies.dictionaries(_hashable, of, max_size=3), strategies.tuples(of, of),
        strategies.sets(_hashable, max_size=3), strategies.builds(Plain, x=of),
    ),
    max_leaves=8,
)  # fmt: skip
_seen: dict[bytes, Any] = {}


def _bits(value: Any) -> Any:
    """The value in a form whose equality is that of types and bits."""
    kind = type(value).__name__
    if type(value) is float:
        return kind, struct.pack("<d", value)
    if type(value) is complex:
        return kind, struct.pack("<dd", value.real, value.imag)
    if type(value) in (list, tuple):
        return kind, tuple(map(_bits, value))
    if type(value) in (set, frozenset):
        return kind, tuple(sorted(map(_bits, value), key=repr))
    if type(value) is dict:
        return kind, tuple((_bits(name), _bits(of)) for name, of in value.items())
    if type(value) is Plain:
        return kind, _bits(value.__dict__)
    return kind, repr(value)


def _random(draw: random.Random, depth: int) -> Any:
    """A value of a small set, so that many are nearly alike."""
    kind = draw.randrange(14 if depth else 8)
    if kind < 4:
        return draw.choice([None, False, True, 0, 1, 2, 1.0, 0.0, -0.0, "", "a", "0", b"", b"a", 1j, 2**70, (), "py"])
    if kind == 4:
        return draw.randrange(-(10**6), 10**6)
    if kind == 5:
        return draw.choice([1.0, -1.0, 1e-300]) * draw.random()
    if kind == 6:
        return numpy.int8(draw.randrange(100)) if draw.random() < 0.5 else numpy.float64(draw.randrange(100))
    if kind == 7:
        return "".join(draw.choices("ab[],:'", k=draw.randrange(4)))
    items = [_random(draw, depth - 1) for _ in range(draw.randrange(4))]
    if kind == 8:
        return {name: of for name, of in zip(("of", "py", "a"), items)}
    if kind == 9:
        return Plain(x=items) if draw.random() < 0.5 else Frozen(1, items)  # type: ignore[arg-type]
    if kind == 10:
        return {draw.choice([1, "1", (1,), b"1"]): of for of in items}
    return tuple(items) if kind == 11 else items


def test_many_random_values() -> None:
    draw = random.Random(int(os.environ.get("SDE_KEYS_SEED", "33")))
    keys: dict[bytes, int] = {}
    values: dict[int, bytes] = {}
    for _ in range(int(os.environ.get("SDE_KEYS", "20000"))):
        value = _random(draw, 3)
        made, bits = key(value), hash(_text(value))
        assert keys.setdefault(made, bits) == bits, value
        assert values.setdefault(bits, made) == made, value


def _text(value: Any) -> str:
    """The value as a text that differs where type or bits do."""
    if type(value) is Plain:
        return f"Plain({_text(value.x)})"
    if type(value) is Frozen:
        return f"Frozen({_text(value.b)})"
    if type(value) in (list, tuple):
        return f"{type(value).__name__}({','.join(map(_text, value))})"
    if type(value) is dict:
        return "{" + ",".join(f"{_text(name)}:{_text(of)}" for name, of in value.items()) + "}"
    return f"{type(value).__name__} {value!r}"


@hypothesis.settings(max_examples=int(os.environ.get("SDE_KEYS_SEARCHED", "1000")), deadline=None, database=None)
@hypothesis.given(_values)
def test_random_values(value: Any) -> None:
    bits = _bits(value)
    made = key(value)
    assert _seen.setdefault(made, bits) == bits
    assert _bits(value) == bits
    if type(value) is not Plain:
        assert key(pickle.loads(pickle.dumps(value))) == made


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (threading.Lock(), ""),
        ([1, {"model": Plain(rng=threading.Lock())}], r"\[1\]\['model'\]\.rng"),
        ({"a": {threading.Lock}, "b": (1, open(os.devnull))}, r"\['b'\]\[1\]"),
        (functools.partial(int, threading.Lock()), ""),
        (numpy.array([1, threading.Lock()], object), ""),
        (Slots(threading.Lock(), 1), r"\.a"),
        (iter([1]), ""),
        ((x for x in ()), ""),
        (memoryview(array.array("d", [1])).cast("B").cast("c")[:0].toreadonly(), None),
    ],
)
def test_what_cannot_be_keyed_is_refused_with_its_place(value: Any, place: str | None) -> None:
    if place is None:
        assert len(key(value)) == 32
        return
    with pytest.raises(sde.KeyingError, match=rf"^{place}.*: .* can't be keyed .*sde\.register"):
        key(value)


def test_depth_and_repetition_end_with_an_error() -> None:
    deep: list[Any] = []
    for _ in range(10_000):
        deep = [deep]
    with pytest.raises(sde.KeyingError, match="more than 200 deep"):
        key(deep)
    twice: list[Any] = []
    for _ in range(60):
        twice = [twice, twice]
    with pytest.raises(sde.KeyingError, match="the same objects lie in it"):
        key(twice)


def test_register_teaches_a_type() -> None:
    class Held:
        def __init__(self, x: Any) -> None:
            self.x, self.lock = x, threading.Lock()

    sde.register(Held, lambda held: held.x)
    assert key(Held(1)) == key(Held(1)) != key(Held(2))
    assert key(Held(1)) != key(1)

    class Same(Held):
        pass

    sde.register(Same, lambda held: held)
    with pytest.raises(sde.KeyingError, match="the object itself"):
        key(Same(1))
    with pytest.raises(TypeError):
        sde.register(1, len)  # type: ignore[arg-type]


def test_estimators_and_frames() -> None:
    import pandas

    frames = [
        pandas.DataFrame({"a": [1, 2]}), pandas.DataFrame({"a": [1, 3]}), pandas.DataFrame({"b": [1, 2]}),
        pandas.DataFrame({"a": [1.0, 2.0]}), pandas.DataFrame({"a": ["x", "y"]}), pandas.DataFrame({"a": ["x", None]}),
        pandas.DataFrame({"a": [1, 2]}, index=[1, 2]), pandas.DataFrame({"a": [1, 2]}, index=[0, 1]),
        pandas.DataFrame({"a": pandas.Categorical(["x", "y"])}),
        pandas.DataFrame({"a": pandas.Categorical(["x", "y"], ["y", "x"])}),
        pandas.DataFrame({"a": pandas.Categorical(["x", "y"], ordered=True)}),
        *(pandas.DataFrame({"a": pandas.Categorical([0], [*range(50), at, *range(60, 99)])}) for at in (50, 51)),
        pandas.DataFrame({"a": pandas.array([1, None], "Int64")}), pandas.DataFrame({"a": [1, None]}),
        pandas.DataFrame({"a": pandas.to_datetime(["2020", "2021"])}),
        pandas.DataFrame({"a": pandas.to_datetime(["2020", "2021"]).tz_localize("UTC")}), pandas.DataFrame(),
        pandas.Series([1, 2]), pandas.Series([1, 2], name="a"), pandas.Index([0, 1]), pandas.RangeIndex(2),
        pandas.MultiIndex.from_tuples([(1, 2)]), pandas.Timestamp("2020"), pandas.NaT, pandas.NA,
        pandas.Series([{"a": 1}]), pandas.Series([{"a": 2}]), pandas.period_range("2020", periods=2, freq="M"),
        pandas.interval_range(0, 2), pandas.interval_range(0, 2, closed="left"),
    ]  # fmt: skip
    assert len({key(frame) for frame in frames}) == len(frames)
    split = pandas.DataFrame({"a": [1, 2]})
    split["b"] = [3, 4]
    assert key(split) == key(pandas.DataFrame({"a": [1, 2], "b": [3, 4]}))
    with pytest.raises(sde.KeyingError, match=r"^\['a'\]"):
        key(pandas.DataFrame({"a": [threading.Lock()]}))
    one, two = Plain(alpha=1.0, model=Plain(coef_=numpy.ones(3))), Plain(alpha=1.0, model=Plain(coef_=numpy.ones(3)))
    assert key(one) == key(two)
    two.model.coef_[0] = 2
    assert key(one) != key(two)
