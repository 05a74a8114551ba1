"""Files of the HLogP modeller: what is read is what was written."""

import pytest

from fembench.base.errors import InputError
from fembench.model.modeller import (
    HostLine,
    read_hosts,
    read_model,
    write_model,
)

HOSTS = """siriguela.ic.uff.br
melancia.ic.uff.br
n01.par.inf.puc-rio.br /home/local/gridriouser/helder
caju.ic.uff.br
"""
MODEL = """4
298 caju.ic.uff.br 28 3 linux
323 siriguela.ic.uff.br 27 5 linux
426 melancia.ic.uff.br 45 6 linux
250 n01.par.inf.puc-rio.br 25 4 linux /home/local/gridriouser/helder
0      234      238      23,567
246    0        226      25,432
230    246      0        24,126
27,036 26,223 23,677 0
"""


@pytest.mark.row("001:F2")
def test_the_host_list_of_fig_4_1_is_read(tmp_path):
    (tmp_path / "a").write_text(HOSTS)
    found = read_hosts(tmp_path / "a")
    assert [host.name for host in found] == [line.split()[0] for line in HOSTS.splitlines()]
    assert found[2] == HostLine("n01.par.inf.puc-rio.br", "/home/local/gridriouser/helder")


@pytest.mark.row("001:F4a", "001:A11")
def test_the_model_of_fig_4_2_survives_its_file(tmp_path):
    first, again = tmp_path / "a", tmp_path / "b"
    first.write_text(MODEL)
    found = read_model(first)
    write_model(found, again)
    assert read_model(again) == found
    assert found.latency[0][3] == 23567  # commas are separators of thousands
    assert found.hosts[3] == (250, "n01.par.inf.puc-rio.br", 25, 4, "linux", "/home/local/gridriouser/helder")


@pytest.mark.parametrize(
    "text", ["", "x\n", "2\n1 a 1 1 linux\n0 1\n1 0\n", "1\n1 a 1 1\n0\n", "1\n1 a 1 1 os\n0 1\n"]
)
def test_another_file_is_refused_in_one_line(tmp_path, text):
    path = tmp_path / "model"
    path.write_text(text)
    with pytest.raises(InputError, match="expected") as error:
        read_model(path)
    assert "\n" not in str(error.value)
