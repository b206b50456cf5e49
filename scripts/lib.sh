# shellcheck shell=bash
# What the scripts share: one virtual environment, .venv in the checkout, set up once and kept. What the package
# needs is installed in the versions of requirements.lock, each file checked against its hash; the developers'
# tools are not locked.
#
#   ANVIL_PYTHON   the Python to use (default: the first of python3, python3.13, 3.12, 3.11 that fits)
#   ANVIL_BUILD    how llama.cpp is compiled: `portable` (the default on x86-64: AVX2, the same
#                  verdicts bit for bit on every such machine) or `native` (this machine's own
#                  instructions: 5 to 19 % faster, other bits)
#   ANVIL_WHEELS   where the compiled llama-cpp-python is kept for the next checkout
#                  (default: ~/.cache/anvil-local/wheels)
#   CMAKE_ARGS     more arguments for the build of llama.cpp, such as -DGGML_CUDA=ON

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=$root/.venv
python=$venv/bin/python
stamp=$venv/anvil-set-up

build=${ANVIL_BUILD:-portable}
wheels=${ANVIL_WHEELS:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/anvil-local/wheels}
# These are the scripts' own settings, not the program's.
export -n ANVIL_PYTHON ANVIL_BUILD ANVIL_WHEELS

say() { printf '==> %s\n' "$*" >&2; }

die() { # MESSAGE [HINT]
  printf 'error: %s\n' "$1" >&2
  [[ -z ${2:-} ]] || printf 'hint: %s\n' "$2" >&2
  exit 2
}

find_python() {
  local candidate
  for candidate in ${ANVIL_PYTHON:+"$ANVIL_PYTHON"} python3 python3.13 python3.12 python3.11 python; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      printf '%s\n' "$candidate"
      return
    fi
    [[ -z ${ANVIL_PYTHON:-} ]] || die "ANVIL_PYTHON=$ANVIL_PYTHON is not a Python of version 3.11 or newer"
  done
  die "no Python of version 3.11 or newer found" \
    "Debian 12, Ubuntu 24.04 and newer: apt install python3 python3-venv; or set ANVIL_PYTHON"
}

make_venv() {
  # The first line of the stamp is the checkout: a moved environment runs scripts of the old place.
  if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null &&
    { [[ ! -f $stamp ]] || [[ $(head -n 1 "$stamp") == "$root" ]]; }; then
    # Someone's own environment may come without pip (uv's do).
    "$python" -m pip --version >/dev/null 2>&1 || "$python" -m ensurepip >/dev/null ||
      die "the environment $venv has no pip" "Debian, Ubuntu: apt install python3-venv"
    return
  fi
  local base
  base=$(find_python)
  "$base" -c 'import ensurepip, venv' 2>/dev/null ||
    die "this Python cannot make virtual environments: $base" "Debian, Ubuntu: apt install python3-venv"
  say "making the virtual environment $venv with $("$base" --version)"
  "$base" -m venv --clear "$venv"
}

# Sets build_args and build_key. Equal keys mean equal builds.
choose_build() {
  local version machine cpu=/proc/cpuinfo instruction features=any
  # The lower bound in pyproject.toml is the version that everything was measured with.
  version=$(sed -n 's/^ *"llama-cpp-python>=\([0-9.]*\).*/\1/p' "$root/pyproject.toml")
  [[ -n $version ]] || die "pyproject.toml does not say which llama-cpp-python is needed"
  llama=llama-cpp-python==$version
  machine=$(uname -m)
  case $build in
    portable | native) ;;
    *) die "ANVIL_BUILD=$build is neither portable nor native" ;;
  esac
  if [[ $build == portable && $machine == x86_64 && -r $cpu ]]; then
    for instruction in avx2 fma f16c bmi2; do
      grep -qw -m 1 "$instruction" "$cpu" && continue
      say "this processor lacks $instruction: building for it alone; verdicts may differ in their last bits"
      build=native
      break
    done
  fi
  if [[ $build == portable && $machine != x86_64 && $machine != amd64 ]]; then
    build=plain # nothing measured for other architectures: whatever llama.cpp chooses
  fi
  build_args=
  if [[ $build == portable ]]; then
    build_args="-DGGML_NATIVE=OFF -DGGML_AVX=ON -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON -DGGML_BMI2=ON"
    build_args+=" -DGGML_AVX512=OFF"
  elif [[ -r $cpu ]]; then
    features=$(grep -m 1 -E '^(flags|Features)' "$cpu" | cksum | cut -d ' ' -f 1)
  fi
  build_args+=${CMAKE_ARGS:+${build_args:+ }$CMAKE_ARGS}
  # A wheel is for one C library too: a home folder may be shared by different systems.
  local libc
  libc=$(getconf GNU_LIBC_VERSION 2>/dev/null || uname -s)
  build_key=$version-$build-$machine-${libc// /}-$(printf '%s' "$features $build_args" | cksum | cut -d ' ' -f 1)
}

# The build_key of the llama-cpp-python in the environment: pip notes the wheel that it came from.
installed_build() {
  "$python" - <<'PYTHON' 2>/dev/null || true
import importlib.metadata
import json

note = importlib.metadata.distribution("llama-cpp-python").read_text("direct_url.json")
print(json.loads(note)["url"].split("/")[-2])
PYTHON
}

find_wheel() {
  local wheel
  for wheel in "$wheels/$build_key"/llama_cpp_python-*.whl; do
    [[ -f $wheel ]] && printf '%s\n' "$wheel" && return
  done
  return 1
}

# The lines of requirements.lock for one package; with `!`, all the others.
locked() { # [!] NAME
  local others=0
  [[ $1 != '!' ]] || { others=1 && shift; }
  awk -v name="$1==" -v others="$others" '
    index($0, name) == 1 { inside = 1 }
    inside != others { print }
    inside && !/\\$/ { inside = 0 }' "$root/requirements.lock"
}

compile_llama() {
  command -v "${CXX:-c++}" >/dev/null || command -v g++ >/dev/null || command -v clang++ >/dev/null ||
    die "llama.cpp must be compiled, and there is no C++ compiler" "Debian, Ubuntu: apt install g++"
  say "compiling llama.cpp ($build), 3 to 5 minutes, once; it is kept in $wheels"
  local work
  work=$(mktemp -d "$wheels/.build-XXXXXX")
  # shellcheck disable=SC2064 # the folder's name of now
  trap "rm -rf '$work'" EXIT
  # pip's cache of built wheels does not look at CMAKE_ARGS: without --no-cache-dir it would hand out a
  # wheel that was built for this machine alone. --no-binary: nor may an index hand out such a wheel.
  locked llama-cpp-python >"$work/requirements.txt"
  CMAKE_ARGS=$build_args "$python" -m pip wheel --no-deps --no-cache-dir --no-binary llama-cpp-python \
    --require-hashes --wheel-dir "$work" --requirement "$work/requirements.txt" >&2 ||
    die "llama-cpp-python could not be built; the reason is above" \
      "it needs a C and a C++ compiler, and an index that pip can reach"
  mkdir -p "$wheels/$build_key"
  mv -f "$work"/llama_cpp_python-*.whl "$wheels/$build_key/"
  rm -rf "$work"
  trap - EXIT
}

install_llama() {
  [[ $(installed_build) != "$build_key" ]] || return 0
  local wheel
  if ! find_wheel >/dev/null; then
    mkdir -p "$wheels"
    exec 8<"$wheels" # another checkout may be compiling the same
    ! command -v flock >/dev/null || flock 8
    find_wheel >/dev/null || compile_llama
    exec 8<&-
  fi
  wheel=$(find_wheel)
  say "installing $llama ($build build)"
  "$python" -m pip install --quiet --force-reinstall --no-deps "$wheel"
  "$python" -c 'import llama_cpp' ||
    die "the compiled llama.cpp cannot be loaded; the reason is above" "to build it again: rm -r $wheels/$build_key"
}

# set_up [dev]: the environment with the package in it, and with the developers' tools.
set_up() {
  local group=${1:-} wanted known=()
  cd "$root" || exit
  export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_USER=0
  # Two scripts at once must not write into one environment. The lock is the checkout itself.
  exec 9<"$root"
  ! command -v flock >/dev/null || flock 9
  make_venv
  choose_build
  wanted=$(printf '%s\n' "$root" "$build_key" "$(cat pyproject.toml requirements.lock | cksum)" "$("$python" --version)")
  [[ ! -f $stamp ]] || mapfile -t known <"$stamp"
  if [[ $(printf '%s\n' "${known[@]:0:4}") == "$wanted" && (-z $group || ${known[4]:-} == "$group") &&
    $(installed_build) == "$build_key" ]]; then
    exec 9<&-
    return
  fi
  say "installing what anvil-local needs, by requirements.lock"
  locked ! llama-cpp-python |
    "$python" -m pip install --quiet --no-deps --require-hashes --requirement /dev/stdin ||
    die "the locked packages could not be installed; the reason is above" \
      "an index that pip can reach must have these versions; scripts/lock writes the file anew"
  install_llama
  "$python" -m pip install --quiet --no-deps --editable "$root"
  if [[ -n $group ]]; then
    # `pip install --group` came with pip 25.1; Debian 12 has 23.0.
    local tools requirements=()
    tools=$("$python" -c 'import sys, tomllib
print("\n".join(tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"][sys.argv[1]]))' "$group")
    mapfile -t requirements <<<"$tools"
    say "installing the developers' tools"
    "$python" -m pip install --quiet "${requirements[@]}" "$llama"
  fi
  [[ $(installed_build) == "$build_key" ]] || die "pip replaced the $build build of llama-cpp-python"
  printf '%s\n' "$wanted" "$group" >"$stamp"
  exec 9<&-
}

# set_up_ragas: a second environment, .venv-ragas, with the real Ragas, for the tests that compare with it.
# Sets ragas_python. No engine: those tests load no model. Measured on two cores: 95 s and 0.8 GB, once.
set_up_ragas() {
  local folder=$root/.venv-ragas wanted requirements=()
  ragas_python=$folder/bin/python
  wanted=$(printf '%s\n' "$root" "$(cat pyproject.toml tests/ragas-versions.txt | cksum)" "$("$python" --version)")
  [[ ! -f $folder/anvil-set-up || $(<"$folder/anvil-set-up") != "$wanted" ]] || return 0
  exec 7<"$root/tests"
  ! command -v flock >/dev/null || flock 7
  say "installing the real Ragas into $folder, about two minutes, once"
  "$python" -m venv --clear "$folder"
  mapfile -t requirements < <("$python" -c 'import re, tomllib
project = tomllib.load(open("pyproject.toml", "rb"))
needed = project["project"]["dependencies"] + project["dependency-groups"]["ragas"]
print("\n".join(each for each in needed if not re.match("llama|outlines", each)))')
  "$ragas_python" -m pip install --quiet --constraint tests/ragas-versions.txt "${requirements[@]}"
  "$ragas_python" -m pip install --quiet --no-deps --editable "$root"
  "$ragas_python" -W ignore -c 'import ragas.metrics.collections' || # or its tests would skip
    die "the real Ragas cannot be imported; the reason is above"
  printf '%s\n' "$wanted" >"$folder/anvil-set-up"
  exec 7<&-
}

# install_models NAME...: from the package index, checked against the pinned checksums.
install_models() {
  local name
  for name; do
    "$venv/bin/anvil-local" models install "$name"
  done
}
