"""Write a machine profile as a file of the HLogP modeller (Mendes 2004, Fig. 4.2).

Examples:
  fembench study modeller machine.json -o modeller.txt     # then: fembench study graph --machine modeller.txt
"""

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    from fembench.cli.options import whole

    parser.add_argument("profile", metavar="PROFILE", help="machine profile from characterize --network")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the file to write")
    parser.add_argument(
        "--bytes", type=whole(0), default=65536, metavar="N", help="size of the messages (default: 65536)"
    )


def run(options: argparse.Namespace) -> int:
    from fembench.records.profile import load_profile
    from fembench_studies.graphs.modeller import model_of, write_model

    write_model(model_of(load_profile(options.profile), options.bytes), options.output)
    print(f"model: {options.output}")
    return 0
