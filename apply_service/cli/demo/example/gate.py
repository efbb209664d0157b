"""A gate that workers wait at."""

import threading


class Gate:
    """Open or shut; everybody who waits is told when that changes."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.is_open = False

    def open(self) -> None:
        with self._changed:
            self.is_open = True
            self._changed.notify_all()

    def shut(self) -> None:
        with self._changed:
            self.is_open = False
            self._changed.notify_all()
