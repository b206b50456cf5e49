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
models=${ANVIL_MODELS_DIR:-${XDG_DATA_HOME:-$HOME/.local/share}/anvil-local/models}
python=${PYTHON:-python3}
# From here on the working directory is the bundle's.
case $venv in /*) ;; *) venv=$PWD/$venv ;; esac
case $models in /*) ;; *) models=$PWD/$models ;; esac
case $python in /*) ;; */*) python=$PWD/$python ;; esac
export ANVIL_MODELS_DIR="$models"
cd "$here"

sha256sum --check --strict --quiet SHA256SUMS ||
  die "a file of this bundle is not what it was: nothing was installed" "copy the bundle again"
for file in wheels/* models/*; do
  cut -c 67- SHA256SUMS | grep -qxF "$file" ||
    die "$file is not of this bundle: nothing was installed" "unpack the bundle into an empty folder"
done
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
  # Never half a model under its own name.
  cp "$file" "$models/.$(basename "$file").part"
  mv "$models/.$(basename "$file").part" "$models/$(basename "$file")"
done
while read -r model; do
  "$venv/bin/anvil-local" models verify "$model"
  # Only a verdict shows that llama.cpp runs here; 1 is a verdict too.
  ANVIL_CACHE_DIR=$venv/first-check "$venv/bin/anvil-local" judge -m "$model" \
    -c "Open from nine to five." "It opens at nine." >/dev/null || [ $? -eq 1 ] ||
    die "installed, but $model cannot judge here; the reason is above" \
      "llama.cpp needs libgomp1 and, on x86-64, a processor with AVX2"
done <MODELS
rm -rf "$venv/first-check"
printf 'installed: %s/bin/anvil-local\n' "$venv"
