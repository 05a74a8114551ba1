"""Before the run: HLogP of the network, the execution graph and its simulation, predictions, their score."""
