"""What generated code says about where a statement comes from."""

from __future__ import annotations

from collections.abc import Sequence

from pullback.tracer.origin import Origin


def comment_of(origins: Sequence[Origin]) -> str:
    """`model.py:5  h = pb.tanh(x)`, or `backward of model.py:5 (tanh, multiply), :4 (exp)`."""
    forward = [origin for origin in origins if origin.line and not origin.is_backward]
    backward = [origin for origin in origins if origin.line and origin.is_backward]
    if forward and not (origins and origins[0].is_backward):
        return f"{forward[0].place}  {forward[0].text}"
    places: dict[tuple[str, int], list[str]] = {}
    for origin in backward:
        rules = places.setdefault((origin.filename, origin.line), [])
        if origin.rule not in rules:
            rules.append(origin.rule)
    texts: list[str] = []
    for (filename, line), rules in places.items():
        first = next(one for one in backward if (one.filename, one.line) == (filename, line))
        place = first.place if not texts else f":{line}"
        texts.append(f"{place} ({', '.join(rules)})")
    return f"backward of {', '.join(texts)}" if texts else ""
