"""Which software runs the collectives of a step?"""

from __future__ import annotations

import os
from typing import NamedTuple

from collectives import Profile, load_profile

__all__ = ["ProfileLike", "Software"]

#: What `collectives.load_profile` takes.
ProfileLike = str | os.PathLike[str] | Profile


class Software(NamedTuple):
    """Profiles of what runs dispatch and combine, and of what runs the other collectives."""

    experts: Profile
    others: Profile

    @classmethod
    def load(cls, profile: ProfileLike, expert_profile: ProfileLike | None) -> Software:
        """Return the two; a profile of expert layers alone leaves the other collectives ideal."""
        first = load_profile(profile)
        second = first if expert_profile is None else load_profile(expert_profile)
        return cls(second, load_profile("ideal") if first.law == "expert" else first)

    @property
    def name(self) -> str:
        """Both names, once where they are the same."""
        return " and ".join(dict.fromkeys((self.experts.name, self.others.name)))

    @property
    def copies_its_own_way(self) -> bool:
        """Whether it copies tokens in a way of its own."""
        return self.experts.law == "expert"
