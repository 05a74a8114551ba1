from fembench.synthetic.lab_cluster import LabCluster, LabHost
from fembench.synthetic.lab_groups import PREFIX, namespaces, up_commands

CLUSTER = LabCluster(
    name="pair",
    hosts=(LabHost(name="a", cpus=(0,)), LabHost(name="b", cpus=(1,), rate="100mbit")),
)


def test_every_command_works_inside_a_namespace_of_the_lab():
    known = set()
    for command in up_commands(CLUSTER):
        if command[:3] == ["ip", "netns", "add"]:
            known.add(command[3])
        else:
            assert command[1] == "-n"
            assert command[2] in known


def test_names_carry_the_prefix():
    assert namespaces(CLUSTER) == [f"{PREFIX}pair.head", f"{PREFIX}pair.a", f"{PREFIX}pair.b"]


def test_a_limited_link_is_limited_at_both_ends():
    limits = [c for c in up_commands(CLUSTER) if c[0] == "tc"]
    assert [(c[2], c[c.index("dev") + 1]) for c in limits] == [
        (f"{PREFIX}pair.b", "eth0"),
        (f"{PREFIX}pair.head", "port1"),
    ]
    assert all(c[c.index("rate") + 1] == "100mbit" for c in limits)


def test_the_bucket_of_a_slow_link_holds_one_packet():
    command = next(c for c in up_commands(CLUSTER) if c[0] == "tc")
    assert 1514 < int(command[command.index("burst") + 1]) < 2 * 1514


def test_names_of_interfaces_are_short_enough_for_the_kernel():
    many = LabCluster(hosts=tuple(LabHost(name=f"h{i}", cpus=(0,)) for i in range(200)))
    for command in up_commands(many):
        if "veth" in command:
            assert len(command[command.index("add") + 1]) <= 15
