"""Write a machine profile as a file of the HLogP modeller (Mendes 2004, Fig. 4.2).

Examples:
  fembench study modeller machine.json -o modeller.txt
  fembench study graph graph.json --machine modeller.txt
"""

import argparse

OPTIONS = """
profile PROFILE: machine profile from characterize --network
-o, --output FILE!: the file to write
--bytes N = 65536: size of the messages
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.options import declare, whole

    declare(parser, OPTIONS, bytes=whole(0))


def run(options: argparse.Namespace) -> int:
    from fembench.records.profile import load_profile
    from fembench_studies.graphs.modeller import model_of, write_model

    write_model(model_of(load_profile(options.profile), options.bytes), options.output)
    print(f"model: {options.output}")
    return 0
