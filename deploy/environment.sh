# Sourced by deploy/demo and deploy/test: makes .venv with what they need, once, from pinned versions.
# Usage: extras=NAMES . deploy/environment.sh

cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "noiseless needs Python 3.11 or newer: install it, or name one with PYTHON=/path/to/python3" >&2
    exit 1
fi
stamp=.venv/installed-$extras
if [ ! -e "$stamp" ] || [ pyproject.toml -nt "$stamp" ] || [ deploy/constraints.txt -nt "$stamp" ]; then
    if ! "$python" -m venv .venv; then
        echo "Python's venv module is needed: sudo apt-get install -y python3-venv" >&2
        exit 1
    fi
    echo "installing noiseless[$extras] into .venv (once)" >&2
    .venv/bin/python -m pip install --quiet --disable-pip-version-check \
        --constraint deploy/constraints.txt --editable ".[$extras]"
    touch "$stamp"
fi
