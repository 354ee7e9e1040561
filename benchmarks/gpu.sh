#!/usr/bin/env bash
# gpu.sh [KILN [OUT]]: everything that is to be seen on a GPU, in one go of a few minutes.
#
# Needs an NVIDIA driver, bash, and the command linked statically (KILN, default build-static/kiln): no packages, no
# toolkit, no compiler. From the tree it takes examples/ and tests/fusions/. Peers (JAX, PyTorch) are measured where Python
# has them. Leaves OUT/results.json and OUT/results.txt (default build-gpu) and prints the table; the exit status is 0 if
# every result was right and bit for bit the host's.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
kiln=${1:-$root/build-static/kiln} out=${2:-$root/build-gpu}
mkdir -p "$out"
export LC_ALL=C CUDA_CACHE_DISABLE=1
[[ -x $kiln ]] || { echo "gpu.sh: no command at $kiln (build it with -Dstatic_llvm=true)" >&2; exit 2; }

"$kiln" devices --json >"$out/devices.json" || exit 4
rows=() bad=0

# bench GROUP FILE OPTION...: one row of JSON, or what went wrong.
bench() {
  local group=$1 file=$2 json status name
  shift 2
  name=$(basename "$file")
  [[ $group == variant ]] && name="${name%.hlo} ${*: -3:1}"
  json=$("$kiln" bench "$file" --device cuda --json "$@" 2>"$out/stderr")
  status=$?
  if ((status > 1)) || [[ -z $json ]]; then
    json="{\"module\": \"$(basename "$file" .hlo)\", \"status\": $status, \"error\": $(head -c 400 "$out/stderr" | tr -d '"\\\n' | sed 's/.*/"&"/')}"
  fi
  ((status == 0)) || bad=$((bad + 1))
  [[ $json != *'"unlike_host": 0'* ]] && bad=$((bad + 1))
  rows+=("{\"group\": \"$group\", \"file\": \"$name\", ${json#\{}")
}

start=$SECONDS
for file in "$root"/examples/*.hlo; do bench example "$file" --repeat 50; done
for file in "$root"/benchmarks/workloads/*.hlo; do [[ -f $file ]] && bench workload "$file" --repeat 50; done
# The other ways to compile: run-time counts, results over parameters, narrow alignment, kernels that wait by themselves.
bench variant "$root/examples/axpy.hlo" --alias 2=0 --max-count=1073741824 --repeat 50
bench variant "$root/examples/bias_relu.hlo" --max-count=1073741824 --repeat 50
bench variant "$root/examples/gelu.hlo" --align=2 --repeat 50
if grep -qE '"target": "sm_(9|1)' "$out/devices.json"; then
  bench variant "$root/examples/gelu.hlo" --programmatic --repeat 50
fi
for file in "$root"/tests/fusions/*.hlo; do
  [[ -f $file ]] || continue
  ((SECONDS - start < 300)) || { echo "gpu.sh: time is up, the other fusions are left out" >&2; break; }
  bench fusion "$file" --repeat 3
done

peers=null
if command -v python3 >/dev/null; then
  peers=$(timeout 300 python3 "$root/benchmarks/peers/on_gpu.py" 2>"$out/peers.log") || peers=null
  [[ -n $peers ]] || peers=null
fi

{
  printf '{"date": "%s", "devices": %s, "seconds": %d, "peers": %s, "rows": [\n' "$(date -u +%FT%TZ)" "$(cat "$out/devices.json")" \
    $((SECONDS - start)) "$peers"
  (IFS=$'\n'; printf '%s' "${rows[*]}") | sed '$!s/$/,/'
  printf '\n]}\n'
} >"$out/results.json"

# field NAME ROW: the value of a number or word.
field() { sed -n "s/.*\"$1\": \"\\{0,1\\}\\([^,\"}]*\\).*/\\1/p" <<<"$2"; }
{
  "$kiln" devices | grep '^cuda'
  date -u
  printf '%-30s %6s %6s %10s %9s %7s %9s %9s %5s\n' module right bits us GB/s "% copy" launch_us compile regs
  right=0 fusions=0
  for row in "${rows[@]}"; do
    r=$(field right "$row") d=$(field unlike_host "$row")
    if [[ $(field group "$row") == fusion ]]; then
      fusions=$((fusions + 1))
      if [[ $r == true && $d == 0 ]]; then
        right=$((right + 1))
        continue
      fi
    fi
    percent=$(awk -v c="$(field copy_us "$row")" -v u="$(field us "$row")" 'BEGIN {if (u > 0) printf "%.1f", 100 * c / u}')
    printf '%-30s %6s %6s %10s %9s %7s %9s %9s %5s\n' "$(field file "$row")" "${r:-ERROR}" "$([[ $d == 0 ]] && echo same || echo "${d:-?}")" \
      "$(field us "$row")" "$(field gb_per_s "$row")" "$percent" "$(field launch_us "$row")" "$(field compile_ms "$row")" "$(field registers "$row")"
    [[ -n $r ]] || field error "$row"
  done
  echo "$right of $fusions random fusions are right and the host's bits"
  [[ $peers == null ]] || echo "peers: $peers"
} | tee "$out/results.txt"
exit $((bad > 0))
