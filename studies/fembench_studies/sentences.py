"""Every study in one sentence, in a module of its own: help pages import
nothing else of the studies."""

SENTENCES = {
    "thesis-000": "run times of farm programs as intervals, in closed form, on a park of 32 machines",
    "thesis-001": "the network model HLogP: rings, fork and join, and schedules of task graphs",
    "thesis-002": "rebalancing of bulk-synchronous programs while they run, with MigBSP++ and others",
    "thesis-003": "two small programs simulated as execution graphs, from counts of their instructions",
    "thesis-004": "phases of a parallel FEM program on fast and slow hosts, experiments E0 to E14",
}
