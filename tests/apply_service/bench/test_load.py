"""Open-loop load on a real server over real HTTP, and what the bench makes of its answers."""

from __future__ import annotations

import asyncio
import json
import statistics
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from oracle_service import OracleRunner, start_oracle_service
from server_thread import serving

from apply_service.__main__ import EXIT_ERROR, EXIT_OK, main
from apply_service.bench.arrivals import poisson_arrivals
from apply_service.bench.load_stages import LoadStage, is_rising, percentile
from apply_service.bench.open_loop import TimedReply, send_open_loop
