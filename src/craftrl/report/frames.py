"""States of images as pictures: the mean frame, the pixels that decide, those that still change, and examples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from craftrl.estimators.craft import CRAFT
from craftrl.report.names import agent_names
from craftrl.report.pictures import over, png, small, to_bytes
from craftrl.report.portraits import Group, commonest, examples_of, groups, moments
from craftrl.report.sample import Sample

__all__ = ["Gallery", "Picture", "Portrait", "gallery"]

EXAMPLES = 4  # frames of a state that are shown
LOOKED_AT = 16  # frames of a state in which the pixels that decide are sought
MOST_PIXELS = 2_000_000  # of all pictures of a report together
MOST_PORTRAITS = 96


@dataclass(frozen=True)
class Picture:
    """A picture as a data URI, what is under it, and what it shows in words."""

    source: str
    label: str
    alt: str


@dataclass(frozen=True)
class Portrait:
    """One state in pictures: the mean, what decides where that is known, what is ignored; and examples."""

    group: Group
    pictures: tuple[Picture, ...]
    examples: tuple[Picture, ...]


@dataclass(frozen=True)
class Gallery:
    """Portraits, how many states have none because the report is full, and whether what decides could be found."""

    portraits: tuple[Portrait, ...]
    left_out: int
    decides: bool


def gallery(model: CRAFT, sample: Sample) -> Gallery:
    """The most visited states of each step in pictures."""
    found = groups(model, sample)
    pixels = int(np.prod(small(np.empty(sample.tau.obs_shape)).shape[:2]))
    chosen = commonest(found, int(np.clip(MOST_PIXELS // (pixels * (EXAMPLES + 3)), 1, MOST_PORTRAITS)))
    known = moments(sample, chosen)
    limits = _limits(sample)
    spread = max((float(deviation.max()) for _, deviation in known.values()), default=1.0)
    portraits = tuple(_portrait(model, sample, group, known[group], limits, spread) for group in chosen)
    decides = all(hasattr(model._encoder_at(h), "head") for h in range(2, sample.tau.H + 1))
    return Gallery(portraits, len(found) - len(chosen), decides)


def _limits(sample: Sample) -> tuple[float, float]:
    """Which values are black and white: those of bytes, or the least and largest that were seen."""
    if sample.tau.dtype == np.uint8:
        return 0.0, 255.0
    ends = [(x.min(), x.max()) for h in range(1, sample.tau.H + 1) for _, x in sample.at(h)]
    return float(min(low for low, _ in ends)), float(max(high for _, high in ends))


def _portrait(
    model: CRAFT, sample: Sample, group: Group, known: tuple[Any, Any], limits: tuple[float, float], spread: float
) -> Portrait:
    mean, deviation = known
    name = group.name.lower()
    drawn = list(examples_of(sample, group, LOOKED_AT))
    plain = to_bytes(mean, *limits)
    pictures = [Picture(png(small(plain)), "mean", f"mean frame of {name}")]
    heat = _heat(model, group, np.stack([x for _, _, x in drawn]))
    if heat is not None:
        label, alt = "decides", f"mean frame of {name}, darkened, with the pixels that decide on the state in orange"
        pictures.append(Picture(png(small(over(plain, heat))), label, alt))
    changes = to_bytes(deviation.mean(axis=2, keepdims=True), 0.0, spread)
    alt = f"where frames of {name} differ from one another: the brighter, the more; the state ignores it"
    pictures.append(Picture(png(small(changes)), "ignored", alt))
    names = agent_names(model)
    examples = [
        Picture(png(small(to_bytes(x, *limits))), f"{names[k]}, step {h}", f"a frame of {name}: {names[k]}, step {h}")
        for k, h, x in drawn[:EXAMPLES]
    ]
    return Portrait(group, tuple(pictures), tuple(examples))


def _heat(model: CRAFT, group: Group, x: NDArray[Any]) -> NDArray[np.float64] | None:
    """Which pixels decide, in the mean over frames, the largest being 1; None where the encoder is no network."""
    encoder = model._encoder_at(group.h)
    if not hasattr(encoder, "head"):
        return None
    from craftrl.oracles.network.saliency import deciding

    heat = deciding(encoder, x).mean(axis=0)  # type: ignore[arg-type]
    return np.asarray(heat / max(heat.max(), 1e-12))
