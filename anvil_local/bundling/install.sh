#!/bin/sh
# Installs anvil_local from this bundle, without a network: sh install.sh [FOLDER]
#   FOLDER   the virtual environment to make (default: ~/anvil-local)
#   PYTHON   the Python to use (default: python3); ANVIL_MODELS_DIR: where models go
# Everything is verified before anything is installed.
set -eu

die() {
  printf 'error: %s\nhint: %s\n' "$1" "$2" >&2
  exit 2
}

here=$(cd "$(dirname "$0")" && pwd)
venv=${1:-$HOME/anvil-local}
case $venv in /*) ;; *) venv=$PWD/$venv ;; esac
models=${ANVIL_MODELS_DIR:-${XDG_DATA_HOME:-$HOME/.local/share}/anvil-local/models}
python=${PYTHON:-python3}
cd "$here"

sha256sum --check --strict --quiet SHA256SUMS ||
  die "a file of this bundle is not what it was: nothing was installed" "copy the bundle again"
read -r made_for <PLATFORM
found=$("$python" -c 'import platform, sys
print("%s %s cp%d%d" % (sys.platform, platform.machine(), *sys.version_info[:2]))') ||
  die "$python cannot be run: nothing was installed" "set PYTHON=/path/to/python"
[ "$found" = "$made_for" ] ||
  die "this bundle is for $made_for, and $python is $found: nothing was installed" "set PYTHON, or make a bundle there"

"$python" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-index --find-links wheels \
  --require-hashes --only-binary :all: -r requirements.txt
mkdir -p "$models"
for file in models/*.gguf; do
  [ -e "$file" ] || continue
  # Never half a model under its own name.
  cp "$file" "$models/.$(basename "$file").part"
  mv "$models/.$(basename "$file").part" "$models/$(basename "$file")"
done
"$venv/bin/anvil-local" models verify
printf 'installed: %s/bin/anvil-local\n' "$venv"
