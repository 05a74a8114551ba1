"""The order in which nodes are simulated, independent ones together; detects deadlocks."""

import numpy as np

from fembench.base.units import few
from fembench.model.plan import DeadlockError, Ints, Node, PlannedMessage

NEVER = -(1 << 40)  # a dependency that is never met


def levels_of(nodes: list[Node], messages: list[PlannedMessage], before: Ints) -> list[Ints]:
    """Levels of nodes, each depending only on earlier levels. Raises DeadlockError."""
    needs: list[list[int]] = []
    for k, node in enumerate(nodes):
        on = [int(before[k])]
        for number, _ in node.waits:
            if number < 0:
                on.append(NEVER)  # a message that is never sent
                continue
            message = messages[number]
            on.append(int(before[message.sent[0]]))
            if message.posted is not None:
                on.append(int(before[message.posted[0]]) if message.posted[0] >= 0 else NEVER)
        needs.append(on)
    left = [sum(1 for n in on if n >= 0) + (1 << 20) * any(n == NEVER for n in on) for on in needs]
    users: list[list[int]] = [[] for _ in nodes]
    for k, on in enumerate(needs):
        for n in on:
            if n >= 0:
                users[n].append(k)
    level = [k for k, count in enumerate(left) if not count]
    found, done = [], 0
    while level:
        found.append(np.array(level, np.int64))
        done += len(level)
        following = []
        for k in level:
            for user in users[k]:
                left[user] -= 1
                if not left[user]:
                    following.append(user)
        level = following
    if done < len(nodes):
        raise DeadlockError(_blocked(nodes, messages, left))
    return found


def _blocked(nodes: list[Node], messages: list[PlannedMessage], left: list[int]) -> str:
    """The ranks that wait for ever, and their partners."""
    first: dict[int, Node] = {}
    for k, node in enumerate(nodes):
        if left[k] > 0:
            first.setdefault(node.rank, node)
    shown = []
    for rank, node in sorted(first.items()):
        partners = set()
        for number, _ in node.waits:
            if number >= 0:
                message = messages[number]
                partners.add(message.target if message.source == rank else message.source)
        shown.append(f"{rank} (for {', '.join(map(str, sorted(partners))) or 'a message never sent'})")
    return f"deadlock: blocked ranks {few(shown, 8)}"
