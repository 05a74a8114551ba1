"""What every rank of a balanced run does."""

from fembench.balance.session import start_balanced
from fembench.bench.rank import program

PROGRAM = program(start_balanced)
