"""What an import will read: whose episodes, in which order, named so that a rerun knows them again."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from craftrl.arguments import check_source, shown
from craftrl.errors import InvalidDataError, InvalidParameterError
from craftrl.importing.cuts import cut
from craftrl.importing.options import Options
from craftrl.importing.recognise import MINARI, agents_at
from craftrl.importing.source import Agent, Episode

__all__ = ["Plan", "make_plan"]


@dataclass(frozen=True)
class Plan:
    """The agents in the order of the store, and the options that their episodes are read with."""

    agents: list[Agent]
    options: Options

    @cached_property
    def fingerprint(self) -> str:
        """The same for the same names, options and unchanged files."""
        text = json.dumps([[agent.name, [self.key(episode) for episode in agent.episodes]] for agent in self.agents])
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def key(self, episode: Episode) -> tuple[str, str]:
        """What the log knows an episode by: which one it is; the state of its file, and how it is read."""
        return episode.key, f"{episode.stamp} {self.options}".strip()

    def in_reading_order(self) -> Iterator[Episode]:
        """The first episode of every agent, then all others: agents that do not fit together are noticed at once."""
        yield from (agent.episodes[0] for agent in self.agents)
        yield from (episode for agent in self.agents for episode in agent.episodes[1:])


def make_plan(given: Sequence[str | os.PathLike[str] | Agent] | Mapping[str, Any], options: Options) -> Plan:
    """Recognise what lies at the paths, cut it, and make sure that it can be a dataset."""
    if not isinstance(given, (Mapping, list, tuple)):
        raise InvalidParameterError(f"agents must be a list with one path per agent; {shown(given)} was given.")
    named = dict(given) if isinstance(given, Mapping) else dict(enumerate(given))
    for path in named.values():
        if not isinstance(path, Agent):
            check_source("An agent's recordings", path)
    _check_paths([path for path in named.values() if not isinstance(path, Agent)])
    found = [agent for name, path in named.items() for agent in _found(name, path, options)]
    _check_names(found)
    agents = cut(_together(found), options)
    for agent in agents:
        if not agent.episodes:
            long = "" if options.clip is None else f" of {options.clip} steps"
            raise InvalidDataError(
                f"Every agent must have an episode{long}; {agent.name} has none; leave it out"
                f"{', or choose shorter clips' if long else ''}."
            )
    if len(agents) < 2:
        given_of = f"those of one, {agents[0].name}, were" if agents else "none was"
        raise InvalidDataError(
            f"There must be recordings of at least two agents; {given_of} given; give one path per agent."
        )
    return Plan(agents, options)


def _found(name: str | int, path: Any, options: Options) -> list[Agent]:
    """The agents of one path, or one that the caller made, with episodes that know where they come from."""
    if isinstance(path, Agent):
        return [_placed(path, f"{path.name} ({name})")]
    where = Path(os.path.realpath(path))
    origin = str(path) if str(path).startswith(MINARI) else str(where.parent if where.is_file() else where)
    agents = [_placed(agent, origin) for agent in agents_at(os.fspath(path), options)]
    return [replace(agents[0], name=name)] if isinstance(name, str) and len(agents) == 1 else agents


def _check_names(agents: list[Agent]) -> None:
    """The log knows episodes by their names, so no two may have the same."""
    times = Counter(episode.key for agent in agents for episode in agent.episodes)
    twice = next((key for key, n in times.items() if n > 1), None)
    if twice is not None:
        raise InvalidDataError(f"Every episode must have a name of its own; two are called {twice}; rename one.")


def _placed(agent: Agent, origin: str) -> Agent:
    return replace(agent, episodes=[replace(episode, origin=origin) for episode in agent.episodes])


def _check_paths(paths: Sequence[Any]) -> None:
    seen: dict[str, Any] = {}
    for path in paths:
        where = str(path) if str(path).startswith(MINARI) else os.path.realpath(path)
        if where in seen:
            raise InvalidDataError(
                f"Each agent must have recordings of its own; {path} was given twice, the first time as {seen[where]}; "
                "leave one out."
            )
        seen[where] = path


def _together(agents: list[Agent]) -> list[Agent]:
    """Agents that the data calls the same are one; others of one name are told apart by their folders."""
    merged: dict[str, Agent] = {}
    others: list[Agent] = []
    for agent in agents:
        if not agent.named_inside or agent.name not in merged:
            others.append(agent)
            if agent.named_inside:
                merged[agent.name] = agent
        else:
            merged[agent.name].episodes.extend(agent.episodes)
    times = Counter(agent.name for agent in others)
    longer = [
        f"{Path(agent.episodes[0].origin).parent.name}/{agent.name}" if times[agent.name] > 1 else agent.name
        for agent in others
    ]
    count = Counter(longer)
    return [
        replace(agent, name=name if count[name] == 1 else f"{name}-{i}")
        for i, (agent, name) in enumerate(zip(others, longer))
    ]
