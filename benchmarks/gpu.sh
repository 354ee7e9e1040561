#!/usr/bin/env bash
# gpu.sh [KILN [OUT]]: everything that is to be seen on a GPU, in one go of a few minutes.
#
# Needs an NVIDIA driver, bash, and the command linked statically (KILN, default build-static/kiln): no packages, no
# toolkit, no compiler. From the tree it takes examples/, benchmarks/ and tests/fusions/. More is seen where there is more: with
# Python the elementary functions (functions.py) and the peers that it has (JAX, PyTorch), with Nsight Compute the hardware's
# counters. STEPS names the steps to make, all by default: "workloads checks counters peers"; with CHECK=no what is timed is
# not checked, which takes longer than the timing. Ended early (SIGTERM), it writes what there is.
#
# Leaves OUT/results.json, OUT/results.txt and OUT/counters.csv (default build-gpu) and prints the table; the exit status is 0
# if every result was right and bit for bit the host's. gpu_page.py and counters.py make pages of them.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
kiln=${1:-$root/build-static/kiln} out=${2:-$root/build-gpu} steps=" ${STEPS:-workloads checks counters peers} "
mkdir -p "$out"
export LC_ALL=C CUDA_CACHE_DISABLE=1
[[ -x $kiln ]] || { echo "gpu.sh: no command at $kiln (build it with -Dstatic_llvm=true)" >&2; exit 2; }

"$kiln" devices --json >"$out/devices.json" || exit 4
rm -rf "$out/rows" "$out/jax.json" "$out/torch.json"
mkdir -p "$out/rows"
number=0 start=$SECONDS

# bench GROUP FILE OPTION...: one row of JSON, or what went wrong, in a file of its own.
bench() {
  local group=$1 file=$2 row json status name
  shift 2
  row=$(printf '%s/rows/%05d' "$out" $number)
  name=$(basename "$file" .hlo)
  [[ $group == variant ]] && name="$name $1"
  json=$(timeout 120 "$kiln" bench "$file" --device cuda --json "$@" 2>"$row.stderr")
  status=$?
  if ((status > 1)) || [[ -z $json ]]; then
    json="{\"module\": \"$(basename "$file" .hlo)\", \"status\": $status, \"error\": $(head -c 400 "$row.stderr" | tr -d '"\\\n' | sed 's/.*/"&"/')}"
  fi
  echo "{\"group\": \"$group\", \"file\": \"$name\", ${json#\{}" >"$row.json"
}
# beside MOST GROUP FILE OPTION...: while others run, at most so many.
beside() {
  local most=$1
  shift
  number=$((number + 1))
  while (($(jobs -r | wc -l) >= most)); do wait -n; done
  bench "$@" &
}
# One at a time is measured; a few prepare and check beside it, as memory allows.
unchecked=()
[[ ${CHECK:-yes} == no ]] && unchecked=(--no-check)
timed() { beside 6 "$@" --repeat 50 --lock "$out/lock" "${unchecked[@]}"; }
checked() { beside $((($(nproc) + 1) / 2)) "$@" --repeat 1; }
said() { echo "gpu.sh: $1: $((SECONDS - start)) s" >&2; }

# field NAME ROW: the value of a number or word.
field() { sed -n "s/.*\"$1\": \"\\{0,1\\}\\([^,\"}]*\\).*/\\1/p" <<<"$2"; }
# Many of one kind: only those that are wrong have a line.
is_many() { [[ $1 == fusion || $1 == function || $1 == small ]]; }
# Writes what there is.
finish() {
  trap '' TERM
  rows=() bad=0 peers=null
  [[ -s $out/jax.json ]] && peers="[$(<"$out/jax.json"), $([[ -s $out/torch.json ]] && cat "$out/torch.json" || echo null)]"
  for row in "$out"/rows/*.json; do [[ -s $row ]] && rows+=("$(<"$row")"); done
  for row in "${rows[@]}"; do # what is refused (status 3) is not wrong
    [[ $row == *'"right": true'*'"unlike_host": 0'* || $row == *'"right": null'* || $row == *'"status": 3,'* ]] || bad=$((bad + 1))
  done
  {
    printf '{"date": "%s", "driver": "%s", "devices": %s, "seconds": %d, "peers": %s, "rows": [\n' "$(date -u +%FT%TZ)" \
      "$(nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1)" "$(cat "$out/devices.json")" \
      $((SECONDS - start)) "$peers"
    (IFS=$'\n'; printf '%s' "${rows[*]}") | sed '$!s/$/,/'
    printf '\n]}\n'
  } >"$out/results.json"

  {
    "$kiln" devices | grep '^cuda'
    date -u
    printf '%-30s %6s %6s %10s %9s %7s %9s %9s %5s\n' module right bits us GB/s "% copy" launch_us compile regs
    declare -A right all
    for row in "${rows[@]}"; do
      r=$(field right "$row") d=$(field unlike_host "$row") group=$(field group "$row")
      [[ $r == null ]] || all[$group]=$((${all[$group]:-0} + 1))
      if [[ $r == true && $d == 0 ]]; then
        right[$group]=$((${right[$group]:-0} + 1))
        is_many "$group" && continue
      fi
      percent=$(awk -v c="$(field copy_us "$row")" -v u="$(field us "$row")" 'BEGIN {if (u > 0) printf "%.1f", 100 * c / u}')
      printf '%-30s %6s %6s %10s %9s %7s %9s %9s %5s\n' "$(field file "$row")" "$([[ $r == null ]] && echo - || echo "${r:-ERROR}")" "$([[ $d == 0 ]] && echo same || echo "${d:-?}")" \
        "$(field us "$row")" "$(field gb_per_s "$row")" "$percent" "$(field launch_us "$row")" "$(field compile_ms "$row")" "$(field registers "$row")"
      [[ -n $r ]] || field error "$row"
    done
    for group in "${!all[@]}"; do echo "$group: ${right[$group]:-0} of ${all[$group]} are right and the host's bits"; done | sort
    [[ $peers == null ]] || echo "peers: $peers"
  } | tee "$out/results.txt"
  exit $((bad > 0))
}
trap finish TERM

if [[ $steps == *" workloads "* ]]; then
  for file in "$root"/examples/*.hlo; do timed example "$file"; done
  for file in "$root"/benchmarks/workloads/*.hlo; do timed workload "$file"; done
  # The other ways to compile: run-time counts, results over parameters, narrow alignment, kernels that wait by themselves.
  timed variant "$root/examples/axpy.hlo" --alias=2=0 --max-count=1073741824
  timed variant "$root/examples/bias_relu.hlo" --max-count=1073741824
  timed variant "$root/examples/gelu.hlo" --align=2
  grep -qE '"target": "sm_(9|1)' "$out/devices.json" && timed variant "$root/examples/gelu.hlo" --programmatic
  wait
  said workloads
fi

if [[ $steps == *" checks "* ]]; then
  for file in "$root"/benchmarks/workloads/small/*.hlo; do checked small "$file"; done
  for file in "$root"/tests/fusions/*.hlo; do checked fusion "$file"; done
  if command -v python3 >/dev/null && python3 "$root/benchmarks/functions.py" "$out/functions" "${FUNCTION_BITS:-26}"; then
    for file in "$out"/functions/*.hlo; do checked function "$file"; done
  fi
  wait
  said checks
fi

# What the simulator counts exactly, of small modules; and what memory moved and how long it took, of real ones.
metrics=l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum,l1tex__t_requests_pipe_lsu_mem_global_op_st.sum
metrics+=,l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum,l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum
metrics+=,l1tex__data_pipe_lsu_wavefronts_mem_shared.sum,l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum
metrics+=,l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum,l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum
metrics+=,smsp__inst_executed.sum,smsp__thread_inst_executed.sum,launch__registers_per_thread
metrics+=,gpu__time_duration.sum,dram__bytes_read.sum,dram__bytes_write.sum,lts__t_sectors_op_read.sum,lts__t_sectors_op_write.sum
if [[ $steps == *" counters "* ]] && command -v ncu >/dev/null; then
  : >"$out/counters.csv"
  for file in "$root"/benchmarks/workloads/small/*.hlo "$root"/examples/*.hlo "$root"/benchmarks/workloads/*.hlo; do
    ((SECONDS - start < ${COUNTERS_UNTIL:-400})) || { echo "gpu.sh: time is up, other counters are left out" >&2; break; }
    echo "# ${file#"$root/"}" >>"$out/counters.csv"
    timeout 60 ncu --clock-control none --metrics "$metrics" --csv "$kiln" run "$file" --device cuda --repeat 1 2>&1 |
      grep -E '^"[0-9]|==ERROR' | cut -d, -f1,5- >>"$out/counters.csv"
  done
  said counters
fi

if [[ $steps == *" peers "* ]] && command -v python3 >/dev/null; then
  for peer in jax torch; do # each has the GPU's memory for itself
    XLA_PYTHON_CLIENT_MEM_FRACTION=.95 timeout "${PEERS_SECONDS:-200}" python3 "$root/benchmarks/peers/on_gpu.py" $peer \
      2>"$out/$peer.log" | tail -n 1 >"$out/$peer.json"
    [[ -s $out/$peer.json ]] || echo null >"$out/$peer.json"
    said $peer
  done
fi
finish
