"""Decides in memory whether a caller has a permission."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_PART = r"(\*|[a-z][A-Za-z0-9_-]{0,63})"
_FORM = re.compile(rf"(?:{_PART}/)?{_PART}(?:\.{_PART})?:{_PART}")
_LONGEST = 200


def _read(permission: object) -> tuple[str | None, ...] | None:
    if not isinstance(permission, str) or len(permission) > _LONGEST:
        return None
    found = _FORM.fullmatch(permission)
    return found.groups() if found else None


def covers(held: object, asked: object) -> bool:
    """Reports whether the permission held covers the permission asked. It is False for malformed
    values. docs/permissions.md has the rules and a table of cases."""
    h, a = _read(held), _read(asked)
    if h is None or a is None:
        return False

    def fits(i: int) -> bool:
        return h[i] in ("*", a[i])

    application = h[0] is None if a[0] is None else fits(0)
    return application and fits(1) and (h[2] is None or fits(2)) and fits(3)


def can(permissions: object, permission: str, department: str | None = None) -> bool:
    """Reports whether a caller has the permission: in the whole tenant, or for one department.

    permissions is the response of get_session. permission has no wildcards, such as
    shop/invoices:approve. Pass the department of the object of the action, not of the user.

    Of permissions that are limited to departments, only those of applications count. Check
    Rolecall's own permissions, such as users:read, for a department with check_all.
    """
    if not isinstance(permissions, Mapping):
        return False
    if any(covers(held, permission) for held in _list(permissions.get("permissions"))):
        return True
    asked = _read(permission)
    if asked is None or asked[0] is None or not isinstance(department, str) or department == "":
        return False
    return any(
        isinstance(scoped, Mapping)
        and department in _departments(scoped)
        and any(covers(held, permission) for held in _list(scoped.get("permissions")))
        for scoped in _list(permissions.get("scopedPermissions"))
    )


def _departments(scoped: Mapping[str, Any]) -> list[Any]:
    reach = scoped.get("reach")
    return _list(reach.get("departments")) if isinstance(reach, Mapping) else []


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
