"""fembench as a test of ReFrame 4: it passes unless the run is INVALID, and reports the figure of merit.

    reframe -c examples/reframe/elasticity.py -r -S Elasticity.ranks=4

A run that is only PROVISIONAL passes, too; to refuse it, leave that word out of `counts`.
"""

import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class Elasticity(rfm.RunOnlyRegressionTest):
    mesh = variable(str, value="m")
    ranks = variable(int, value=2)
    quick = variable(bool, value=False)
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    local = True  # fembench starts its ranks itself, on the hosts of the job
    executable = "fembench"

    @run_before("run")
    def choose_case(self):
        case = ["run", self.mesh, "--ranks", str(self.ranks), "--results", "results"]
        self.executable_opts = [*case, "--quick"] if self.quick else case

    @sanity_function
    def counts(self):
        return sn.assert_found(r"verdict\W+(VALID|PROVISIONAL)", self.stdout)

    @performance_function("MDOF/s")
    def figure_of_merit(self):
        return sn.extractsingle(r"figure of merit\W+([\d.]+) MDOF/s", self.stdout, 1, float)
