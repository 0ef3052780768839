#!/bin/sh
# build.sh [DIR]   default .cache/vllm in this repository
# Makes everything a local vLLM needs on a processor: its CPU build as pinned in engine.txt, and a small random-weight model.
# What is there already is kept. Needs x86-64 Linux, Python 3.11 ($PYTHON, default python3.11), 2.5 GB of disk.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=${1:-$here/../../.cache/vllm}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

if [ ! -e "$dir/venv/ready" ]; then
    rm -rf "$dir/venv"
    "${PYTHON:-python3.11}" -m venv "$dir/venv"
    "$dir/venv/bin/python" -m pip install -q --no-deps --disable-pip-version-check -r "$here/engine.txt"
    # The command asks for a distribution named vllm, and takes "+cpu" in its version for the platform.
    site=$("$dir/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
    mkdir -p "$site/vllm-0.32.0+cpu.dist-info"
    printf 'Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n' > "$site/vllm-0.32.0+cpu.dist-info/METADATA"
    touch "$dir/venv/ready"
fi

if [ ! -e "$dir/tiny/model.safetensors" ]; then
    rm -rf "$dir/tiny.part"
    "$dir/venv/bin/python" "$here/make_tiny_model.py" "$dir/tiny.part"
    rm -rf "$dir/tiny"
    mv "$dir/tiny.part" "$dir/tiny"
fi

echo "venv  $dir/venv"
echo "model $dir/tiny"
