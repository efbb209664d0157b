"""A lock on an open file or folder that ends with the process, however that ends.

Windows has none of it.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    HAS_LOCKS = False

    def try_lock(descriptor: int) -> bool:
        """Return true: without locks, two runs at once are not noticed."""
        return True

    def unlock(descriptor: int) -> None:
        """Do nothing."""

else:
    import fcntl

    HAS_LOCKS = True

    def try_lock(descriptor: int) -> bool:
        """True if the lock was free. Raises OSError where the file system has no locks."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def unlock(descriptor: int) -> None:
        """Release the lock."""
        fcntl.flock(descriptor, fcntl.LOCK_UN)
