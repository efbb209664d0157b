"""A rank behind the lead: `python -m batching.model.parallel.worker FD`, started by the lead.

What it is to be comes through the socket. Ends when the other end of the socket does.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

from batching.model.parallel.frames import Broken, Join, LeadFrame, Present
from batching.model.parallel.runner import RankRunner, join_ranks
from batching.remote.frame_socket import ConnectionLostError, FrameSocket

_LOGGER = logging.getLogger(__name__)


def follow_lead(fd: int) -> int:
    """Do what the lead says until it goes; the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal tells all processes at once
    connection: FrameSocket[LeadFrame] = FrameSocket(socket.socket(fileno=fd), LeadFrame)
    try:
        frame = connection.receive()
        assert isinstance(frame, Join), "what this rank is comes first"
        connection.send(Present())
        config = frame.engine_config()
        runner = RankRunner(
            config, *join_ranks(config, rank=frame.rank, meeting=Path(frame.meeting))
        )
        while True:
            runner.follow(connection.receive())
    except ConnectionLostError:
        return 0
    except Exception as error:  # the lead has to know, and goes with its ranks
        _LOGGER.debug("the rank ends", exc_info=error)
        with suppress(ConnectionLostError):
            connection.send(Broken(f"{type(error).__name__}: {error}"))
        return 1


if __name__ == "__main__":
    code = follow_lead(int(sys.argv[1]))
    logging.shutdown()
    os._exit(code)  # taking torch apart takes a second, and nothing is left to be told
