"""Names of zones: which are known here, and which was meant by another one."""

from __future__ import annotations

from zoneinfo import ZoneInfo, available_timezones

from hubbub.errors import PolicyError, what_was_given
from hubbub.spelling import meant_by

__all__ = ["a_zone", "zone_meant"]


def a_zone(name: object) -> str:
    """The name of a zone that is known here. Raises PolicyError for another."""
    try:
        if not isinstance(name, str) or not name:
            raise ValueError
        ZoneInfo(name)
    except (ValueError, OSError):  # ZoneInfoNotFoundError is a KeyError
        raise PolicyError(f"tz={what_was_given(name)}: expected a zone such as 'Europe/Rome'.") from None
    except KeyError:
        raise PolicyError(f"tz={name!r}: no such zone is known here. Write it as 'Europe/Rome'.") from None
    return name


def zone_meant(name: object) -> str | None:
    """The zone that was meant by a name that is not known; None where that is not plain.

    >>> zone_meant("europe/rome"), zone_meant("America/New York"), zone_meant("Europe/Berln"), zone_meant("UTC+1")
    ('Europe/Rome', 'America/New_York', 'Europe/Berlin', None)
    """
    return meant_by(name, available_timezones()) if isinstance(name, str) else None
