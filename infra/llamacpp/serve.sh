#!/bin/sh
# serve.sh PORT LOG [llama-server arguments]
# Prints its process id and becomes llama-server on 127.0.0.1:PORT, in the foreground; add & to go on, and end it with kill PID.
# DIR names the folder made by build.sh (default .cache/llamacpp in this repository). A later argument overrides an earlier one.
set -eu
[ $# -ge 2 ] || { sed -n '2,4p' "$0" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
dir=${DIR:-$here/../../.cache/llamacpp}
port=$1 log=$2
shift 2
[ -e "$dir/tiny.gguf" ] || { echo "serve.sh: nothing in $dir, run build.sh first" >&2; exit 2; }
echo $$
LD_LIBRARY_PATH="$dir/engine/bin" exec "$dir/engine/bin/llama-server" -m "$dir/tiny.gguf" -a tiny --host 127.0.0.1 --port "$port" \
    --metrics --slots -np 4 -c 4096 -t 2 -tb 2 --threads-http 4 --no-webui -fit off --device none "$@" >"$log" 2>&1
