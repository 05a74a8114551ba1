import pytest

from fembench.base.errors import InputError
from fembench.synthetic.lab_cluster import LabCluster, LabHost, bits_per_second, check, read_cluster

TEXT = """
name = "pair"
[[hosts]]
name = "node8"
cpus = [0, 1]
[[hosts]]
name = "node00"
cpus = [1]
speed = 0.25
slots = 3
rate = "100mbit"
"""


@pytest.fixture
def cluster(tmp_path):
    """A function: the cluster of a file."""

    def read(text=TEXT):
        path = tmp_path / "cluster.toml"
        path.write_text(text)
        return read_cluster(path, (0, 1))

    return read


def test_a_cluster_is_read_with_its_defaults_and_its_label_names_hosts_speeds_and_links(cluster):
    found = cluster()
    fast, slow = found.hosts
    assert (found.name, found.priority) == ("pair", False)
    assert (fast.speed, fast.ranks, fast.rate) == (1.0, 2, "")
    assert (slow.speed, slow.ranks, slow.rate) == (0.25, 3, "100mbit")
    assert found.label == "lab pair: node8 2 CPU at 1, node00 1 CPU at 0.25, link 100mbit"


def test_addresses_are_inside_the_network():
    cluster = LabCluster(hosts=(LabHost(name="a", cpus=(0,)),), network="10.9.8.0/29")
    assert [cluster.address(i) for i in (0, 1)] == ["10.9.8.1/29", "10.9.8.2/29"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('"node00"', '"node8"'), "'node8' is taken"),
        (('"node00"', '"head"'), "'head' is taken"),
        (('"node00"', '"Node 0"'), "a-z, 0-9"),
        (('"pair"', '"a.b"'), "a-z, 0-9"),
        (("cpus = [1]", "cpus = [7]"), r"no CPU 7 here; usable CPUs: \[0, 1\]"),
        (("cpus = [1]", "cpus = []"), "one or more"),
        (("cpus = [1]", "cpus = [1, 1]"), "each once"),
        (("0.25", "0"), "speed = 0"),
        (("0.25", "2"), "speed = 2"),
        (("0.25", "nan"), "speed = nan"),
        (("slots = 3", "slots = -1"), "slots = -1"),
        (("100mbit", "fast"), "rate 'fast'"),
        (("100mbit", "1bit"), "rate '1bit'"),
        (("speed", "sped"), "unknown key 'sped'.*'speed'"),
        (('name = "pair"', 'network = "8.8.8.0/24"'), "private"),
        (('name = "pair"', 'network = "10.0.0.0/30"'), "holds all hosts"),
        (('name = "pair"', 'network = "ten"'), "network 'ten'"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(cluster, change, message):
    with pytest.raises(InputError, match=message) as error:
        cluster(TEXT.replace(*change))
    assert "\n" not in str(error.value)


def test_a_cluster_has_hosts():
    with pytest.raises(InputError, match="no hosts"):
        check(LabCluster(hosts=()), (0,), "here")


def test_rates_are_read_as_bits_a_second():
    found = [bits_per_second(rate) for rate in ("100mbit", "1.5gbit", "64kbit", "9600bit")]
    assert found == [1e8, 1.5e9, 64e3, 9600]
