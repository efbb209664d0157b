"""A token bucket: short bursts pass, the average rate holds."""

import time


class RateLimiter:
    def __init__(self, rate: float, burst: int) -> None:
        self.rate = rate
        self.burst = burst
        self.tokens = float(burst)
        self.updated_at = time.monotonic()

    def try_acquire(self, amount: int = 1) -> bool:
        """Take tokens if enough are there; never wait."""
        self.refill()
        if amount > self.tokens:
            return False
        self.tokens -= amount
        return True

    def acquire(self, amount: int = 1) -> None:
        """Wait until enough tokens are there."""
        while not self.try_acquire(amount):
            time.sleep(amount / self.rate)

    def refill(self) -> None:
        now = time.monotonic()
        gained = (now - self.updated_at) * self.rate
        self.tokens = min(self.burst, self.tokens + gained)
        self.updated_at = now
