"""Schedules such as ``*/5 8-18 * * MON-FRI`` or ``@hourly``. Pure: times are arguments.

Source: crontab(5), and the syntax of github.com/robfig/cron as Kubernetes uses it.
"""

from __future__ import annotations

import datetime
import zoneinfo
from dataclasses import dataclass
from functools import lru_cache

_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_MINUTES_MAX = 5 * 366 * 24 * 60
_WINDOWS_S = (3600, 24 * 3600, 32 * 24 * 3600, 5 * 366 * 24 * 3600)  # searched for the last time


@dataclass(frozen=True, slots=True)
class Schedule:
    """The minutes at which something is to happen."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  # 0 is Sunday
    any_day: bool  # days or weekdays is a star: then both have to match, else one
    zone: datetime.tzinfo

    def next(self, after_s: float) -> float:
        """Return the first time after another, in seconds since 1970; infinite when never."""
        moment = datetime.datetime.fromtimestamp(int(after_s) // 60 * 60 + 60, self.zone)
        for _ in range(_MINUTES_MAX):
            if moment.month not in self.months or not self._has_day(moment):
                moment = _forward(moment, days=1)
            elif moment.hour not in self.hours:
                moment = _forward(moment, hours=1)
            elif moment.minute not in self.minutes:
                moment = _forward(moment, minutes=1)
            else:
                return moment.timestamp()
        return float("inf")

    def latest(self, after_s: float, until_s: float) -> float | None:
        """Return the last time after one and not after another; None when there is none."""
        for window_s in _WINDOWS_S:
            found, moment_s = None, self.next(max(after_s, until_s - window_s))
            while moment_s <= until_s:
                found, moment_s = moment_s, self.next(moment_s)
            if found is not None or until_s - window_s <= after_s:
                return found
        return None

    def _has_day(self, moment: datetime.datetime) -> bool:
        day = moment.day in self.days
        weekday = moment.isoweekday() % 7 in self.weekdays
        return (day and weekday) if self.any_day else (day or weekday)


def _forward(moment: datetime.datetime, **step: int) -> datetime.datetime:
    """Go to the beginning of the next day, hour or minute, across changes of the clock."""
    if "days" in step:
        moment = moment.replace(hour=0, minute=0)
    elif "hours" in step:
        moment = moment.replace(minute=0)
    utc = (moment + datetime.timedelta(**step)).astimezone(datetime.UTC)
    return utc.astimezone(moment.tzinfo)


@lru_cache(maxsize=256)
def parse_schedule(text: str, zone: str | None = None) -> Schedule:
    """Read a schedule of five fields, or a macro such as ``@daily``. Raises ValueError."""
    try:
        place: datetime.tzinfo = zoneinfo.ZoneInfo(zone) if zone else datetime.UTC
    except (zoneinfo.ZoneInfoNotFoundError, ValueError) as error:
        raise ValueError(f"unknown time zone {zone}") from error
    fields = _MACROS.get(text.strip(), text).split()
    if len(fields) != 5:
        raise ValueError(f"expected exactly 5 fields, found {len(fields)}: {fields}")
    minutes, hours, days, months, weekdays = fields
    return Schedule(
        minutes=_field(minutes, 0, 59),
        hours=_field(hours, 0, 23),
        days=_field(days, 1, 31),
        months=_field(months, 1, 12, _MONTHS),
        weekdays=frozenset(day % 7 for day in _field(weekdays, 0, 7, _DAYS)),
        any_day=days[0] in "*?" or weekdays[0] in "*?",
        zone=place,
    )


def _field(text: str, low: int, high: int, names: list[str] | None = None) -> frozenset[int]:
    found: set[int] = set()
    for part in text.split(","):
        span, _, step_text = part.partition("/")
        first, dash, last = span.partition("-")
        if span in ("*", "?"):
            start, end = low, high
        else:
            start = _number(first, low, names)
            end = _number(last, low, names) if dash else (high if step_text else start)
        step = int(step_text) if step_text else 1
        if start < low or end > high or start > end or step < 1:
            raise ValueError(f"{part} is not within {low} and {high}")
        found.update(range(start, end + 1, step))
    return frozenset(found)


def _number(text: str, low: int, names: list[str] | None) -> int:
    if names and text.lower() in names:
        return names.index(text.lower()) + (low if low == 1 else 0)
    return int(text)
