"""Ranks that are told to leave, as a user writes them."""

from fembench.base.errors import InputError


def parse_drain(text: str, ranks: int) -> dict[int, int]:
    """{rank: iteration} from "2@100,0@300". Raises InputError."""
    result = {}
    for word in filter(None, text.split(",")):
        rank, at, iteration = word.partition("@")
        if not (at and rank.isdigit() and iteration.isdigit()):
            raise InputError(f"drain '{text}': expected RANK@ITERATION, as in 2@100")
        if int(rank) >= ranks:
            raise InputError(f"drain '{text}': rank {rank} of {ranks}")
        result[int(rank)] = int(iteration)
    if len(result) >= ranks:
        raise InputError(f"drain '{text}': no rank stays; expected at least one")
    return result
