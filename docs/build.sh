#!/usr/bin/env bash
# Build the documentation into docs/_build/html. A warning is an error. More arguments go to sphinx-build.
set -uo pipefail
# shellcheck source=scripts/environment.sh
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../scripts/environment.sh"
prepare_environment base docs
"$VENV/bin/python" -m sphinx -W --keep-going -q -E -a -b html -d "$ROOT/docs/_build/doctrees" "$@" "$ROOT/docs" "$ROOT/docs/_build/html" || exit 1
printf 'docs/_build/html/index.html\n'
