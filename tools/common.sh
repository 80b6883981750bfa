# Functions that the scripts in tools share. They find or install the tools that a build needs.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
assume_yes=${CI:+1}  # if set, every offer is accepted without a question

say() { printf '%s\n' "$*"; }
fail() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# ask QUESTION: returns true if the user agrees. Without a terminal the answer is yes, because
# otherwise an unattended script would stop at its first question.
ask() {
  if [ -n "$assume_yes" ] || [ ! -t 0 ]; then
    say "$1 yes"
    return 0
  fi
  local answer
  read -r -p "$1 [Y/n] " answer
  [ -z "$answer" ] || [ "${answer#[yY]}" != "$answer" ]
}

has_header() {
  local folder paths=${CPATH:-}
  for folder in /usr/include /usr/local/include ${paths//:/ }; do
    [ -e "$folder/$1" ] && return 0
  done
  return 1
}

# Prints the Debian packages that a build still needs.
missing_packages() {
  command -v "${CXX:-c++}" >/dev/null || echo g++
  command -v cmake >/dev/null || echo cmake
  command -v ninja >/dev/null || echo ninja-build
  has_header fmt/format.h || echo libfmt-dev
  has_header doctest/doctest.h || echo doctest-dev
  has_header nlohmann/json.hpp || echo nlohmann-json3-dev
  has_header CLI/CLI.hpp || echo libcli11-dev
  has_header xxhash.h || echo libxxhash-dev
}

# install_packages PACKAGE...: installs Debian packages with apt-get. Only this function uses root
# rights.
install_packages() {
  say "missing: $*"
  command -v apt-get >/dev/null || fail "install these with your package manager (the names are Debian's), then run me again"
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || fail "as root, run: apt-get install $*"
    as_root=(sudo)
    [ -t 0 ] || as_root=(sudo -n)
  fi
  ask "install them with apt-get?" || fail "run: sudo apt-get install $*"
  local quiet=(env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Use-Pty=0)
  { "${as_root[@]}" "${quiet[@]}" update && "${as_root[@]}" "${quiet[@]}" install --no-install-recommends "$@"; } \
    >"$root/.cache/apt.log" 2>&1 </dev/null || {
    tail -n 20 "$root/.cache/apt.log" >&2
    fail "apt-get failed (all of it: .cache/apt.log); as root, run: apt-get install $*"
  }
}

ensure_packages() {
  mkdir -p "$root/.cache"
  local missing
  missing=$(missing_packages | tr '\n' ' ')
  [ -z "$missing" ] && return 0
  # ccache is useful, but its absence alone does not justify a request for root rights.
  command -v ccache >/dev/null || missing="$missing ccache"
  # shellcheck disable=SC2086
  install_packages $missing
  missing=$(missing_packages | tr '\n' ' ')
  [ -z "$missing" ] || fail "still missing after the installation: $missing"
}

# Prints the folder of an NVRTC that the library will find by itself or through
# ANNULUS_LIBRARY_PATH. The folders are searched in the library's order.
find_nvrtc() {
  local folder file paths=${ANNULUS_LIBRARY_PATH:-}:${LD_LIBRARY_PATH:-}
  for folder in ${paths//:/ } \
      ${CUDA_HOME:+"$CUDA_HOME/lib64"} ${CUDA_PATH:+"$CUDA_PATH/lib64"} \
      /usr/local/cuda*/lib64 /usr/local/cuda*/targets/*/lib /usr/lib/*-linux-gnu /usr/lib64; do
    for file in "$folder"/libnvrtc.so*; do
      [ -e "$file" ] && echo "$folder" && return 0
    done
  done
  return 1
}

# Finds NVRTC, or offers to install its pip wheel into .cache/nvrtc. Exports ANNULUS_LIBRARY_PATH if
# it is needed.
ensure_nvrtc() {
  local folder
  for folder in "$root"/.cache/nvrtc/nvidia/*/lib; do
    [ -e "$folder" ] && export ANNULUS_LIBRARY_PATH="${ANNULUS_LIBRARY_PATH:+$ANNULUS_LIBRARY_PATH:}$folder"
  done
  nvrtc_folder=$(find_nvrtc) && return 0
  say "NVRTC is not here: there is no CUDA toolkit on this machine. Annulus compiles its kernels with it."
  say "The Python package nvidia-cuda-nvrtc holds it (a download of 60 MB into .cache/nvrtc, which git ignores)."
  ask "fetch it?" || fail "run tools/get_nvrtc, or set ANNULUS_LIBRARY_PATH to the folder of libnvrtc.so, then run me again"
  "$root/tools/get_nvrtc" || fail "could not fetch NVRTC; set ANNULUS_LIBRARY_PATH to the folder of libnvrtc.so"
  for folder in "$root"/.cache/nvrtc/nvidia/*/lib; do
    export ANNULUS_LIBRARY_PATH="${ANNULUS_LIBRARY_PATH:+$ANNULUS_LIBRARY_PATH:}$folder"
  done
  nvrtc_folder=$(find_nvrtc) || fail "no libnvrtc.so in .cache/nvrtc"
}

# The rooms whose tests run under sanitizers.
sanitized_rooms=(base pattern layout ptx sim_driver jit attention tuned autotune ring planner api)

cores() { getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2; }

# build_tree [TARGET...]: configures the preset release in build/ and builds the targets.
build_tree() {
  cd "$root" || exit 1
  [ -f build/build.ninja ] || say "configuring (the first build takes a few minutes)"
  cmake --preset release -DANNULUS_BENCH=ON -DANNULUS_PRECOMPILE=ON -DANNULUS_UNITY=ON \
    -DANNULUS_WERROR="${CI:+ON}" >.cache/configure.log 2>&1 || {
    cat .cache/configure.log >&2
    fail "configuring failed"
  }
  cmake --build --preset release -j "$(cores)" ${1:+--target "$@"} || fail "the build failed"
}

# Whether this clang++ compiles the tree and has libFuzzer and the sanitizers.
has_fuzzer() {
  local major
  major=$("$1" -dumpversion 2>/dev/null) && [ "${major%%.*}" -ge 16 ] &&
    echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' |
    "$1" -fsanitize=fuzzer,address,undefined -x c++ - -o /dev/null 2>/dev/null
}

# Sets `clang` and `clangxx` to such a compiler, or offers to install Debian's.
ensure_clang() {
  local attempt suffix
  mkdir -p "$root/.cache"
  for attempt in found installed; do
    for suffix in '' -22 -21 -20 -19 -18 -17 -16; do
      has_fuzzer "clang++$suffix" || continue
      clang=clang$suffix clangxx=clang++$suffix
      return 0
    done
    [ $attempt = installed ] || install_packages clang-16 libclang-rt-16-dev
  done
  fail "no clang++ of version 16 or later links with -fsanitize=fuzzer,address,undefined"
}

# build_preset PRESET [TARGET...]: configures a preset in its folder and builds the targets. The
# fuzz targets are built by clang. `preset_options` holds further options for CMake.
preset_options=()
build_preset() {
  local preset=$1 compilers=()
  shift
  cd "$root" || exit 1
  if [ ! -f "build/$preset/build.ninja" ]; then
    say "configuring $preset (its first build takes a few minutes)"
    if [ "$preset" = fuzz ]; then
      ensure_clang
      compilers=(-DCMAKE_C_COMPILER="$clang" -DCMAKE_CXX_COMPILER="$clangxx")
    fi
  fi
  cmake --preset "$preset" -DANNULUS_BENCH=OFF ${compilers[@]+"${compilers[@]}"} \
    ${preset_options[@]+"${preset_options[@]}"} >".cache/configure-$preset.log" 2>&1 || {
    cat ".cache/configure-$preset.log" >&2
    fail "configuring $preset failed"
  }
  [ $# = 0 ] || cmake --build "build/$preset" -j "$(cores)" --target "$@" || fail "the build of $preset failed"
}
