"""What the digest of a class is made of: all that its body made, its bases and its metaclass."""

from __future__ import annotations

import dataclasses
import enum
import inspect
from types import GetSetDescriptorType, MemberDescriptorType
from typing import TYPE_CHECKING

from ._code_bytes import digest

if TYPE_CHECKING:
    from ._code_walk import Walk

# What says where and how the class is written, or is kept in it while the program runs.
_NOT_COUNTED = frozenset(
    """__dict__ __weakref__ __doc__ __module__ __annotations__ __annotate__ __annotate_func__
    __annotations_cache__ __conditional_annotations__ __type_params__ __firstlineno__
    __static_attributes__ __slotnames__ __dataclass_fields__ __dataclass_params__ _abc_impl
    __protocol_attrs__ __non_callable_proto_members__""".split()
)
# What an enum makes of its members, which are described themselves.
_OF_ENUMS = frozenset(
    """_member_map_ _member_names_ _value2member_map_ _unhashable_values_ _unhashable_values_map_
    _hashable_values_ _value_repr_ _member_type_ _use_args_ _new_member_""".split()
)
# What an enum gives its members.
OF_MEMBERS = frozenset({"_name_", "_value_", "__objclass__", "_sort_order_", "_inverted_"})


def describe_class(walk: Walk, cls: type, label: str) -> list[bytes]:
    """Describes a class of the project, in the order of its body."""
    place = label or f"{cls.__module__}.{cls.__qualname__}"
    own = vars(cls)
    walk.watched.items(own)
    walk.watched.attribute(cls, "__bases__", cls.__bases__)
    fields = [digest("class", cls.__qualname__)]
    if type(cls) is not type:
        fields.append(digest("metaclass", walk.refer(type(cls), "")))
    fields += [digest("base", walk.refer(base, "")) for base in cls.__bases__]
    skipped = set(_NOT_COUNTED)
    if isinstance(cls, enum.EnumMeta):
        member: enum.Enum
        skipped |= _OF_ENUMS | cls.__members__.keys()
        for name, member in cls.__members__.items():
            made = walk.refer(member._value_, f"{place}.{name}")
            fields.append(digest("member", name, str(member._name_), made))
            others = vars(member).keys() - OF_MEMBERS
            walk.watched.items(vars(member))
            for other in sorted(others):
                made = walk.refer(vars(member)[other], f"{place}.{name}.{other}")
                fields.append(digest("attribute", name, other, made))
    fields += _describe_dataclass(walk, cls, place)
    for name, value in list(own.items()):
        if name in skipped:
            continue
        if isinstance(value, (GetSetDescriptorType, MemberDescriptorType)):
            fields.append(digest("slot", name))
        else:
            fields.append(digest("attribute", name, walk.refer(value, f"{place}.{name}")))
    return fields


def _describe_dataclass(walk: Walk, cls: type, place: str) -> list[bytes]:
    """Describes the fields of a dataclass, of which the annotations count."""
    own = vars(cls)
    if "__dataclass_fields__" not in own:
        return []
    described = [digest("dataclass", repr(own.get("__dataclass_params__")))]
    for name, field in own["__dataclass_fields__"].items():
        # Of a class variable `kw_only` is `MISSING`, whose repr has its address.
        options = (field.init, field.repr, field.hash, field.compare, field.kw_only is True)
        parts = [digest("field", name, _annotation(field.type), repr(options), repr(field._field_type))]
        for given in (field.default, field.default_factory):
            if given is not dataclasses.MISSING:
                parts.append(walk.refer(given, f"{place}.{name}"))
            else:
                parts.append(digest("not given"))
        for key, value in field.metadata.items():
            parts.append(digest("metadata", str(key), walk.refer(value, f"{place}.{name}")))
        described.append(digest("field", *parts))
    return described


def _annotation(annotation: object) -> str:
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
