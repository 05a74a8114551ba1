"""The option that empties ranks during a run."""

import re

from fembench.base.errors import InputError, shown


def parse_drain(text: str, ranks: int) -> dict[int, int]:
    """{rank: iteration} from "2@100,0@300". Raises InputError."""
    result = {}
    for word in filter(None, text.split(",")):
        rank, _, iteration = word.partition("@")
        if not re.fullmatch("[0-9]{1,9}@[0-9]{1,9}", word):
            raise InputError(f"drain '{shown(text)}': expected RANK@ITERATION, as in 2@100")
        if int(rank) in result:
            raise InputError(f"drain '{shown(text)}': rank {rank} is given twice")
        if int(rank) >= ranks:
            raise InputError(f"drain '{shown(text)}': rank {rank}; expected ranks below {ranks}")
        result[int(rank)] = int(iteration)
    if len(result) >= ranks:
        raise InputError(f"drain '{shown(text)}': no rank remains; expected at least one")
    return result
