# What the tests of the command share: a folder of their own to work in, TAP by exit status and output, small inputs.
# To be sourced with `kiln` set to the command.
set -u
export LC_ALL=C
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}allocator_may_return_null=1 # as malloc without it
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2

count=0
bad=0

# result NAME: one TAP line by the last exit status; where it fails, also what the command said.
result() {
  local status=$?
  count=$((count + 1))
  if ((status == 0)); then
    echo "ok $count - $1"
  else
    echo "not ok $count - $1"
    sed 's/^/# /' out err 2>/dev/null | head -n 20
    bad=1
  fi
}

skip() {
  count=$((count + 1))
  echo "ok $count - $1 # SKIP $2"
}

# ends STATUS COMMAND...: runs with stdout to `out` and stderr to `err`.
ends() {
  local want=$1 status
  shift
  "$@" >out 2>err </dev/null
  status=$?
  ((status == want)) && return
  echo "exit status $status, expected $want" >>err
  return 1
}

# works NAME ARGUMENT...: succeeds with a result on stdout and silence on stderr.
works() {
  local name=$1
  shift
  ends 0 "$kiln" "$@" && [[ -s out && ! -s err ]]
  result "$name"
}

# refuses STATUS REGEX NAME ARGUMENT...: nothing on stdout, a message on stderr that fits.
refuses() {
  local status=$1 regex=$2 name=$3
  shift 3
  ends "$status" "$kiln" "$@" && [[ ! -s out ]] && grep -qE -- "$regex" err
  result "$name"
}

# says REGEX NAME: what the last command wrote to stdout has a line that fits.
says() {
  grep -qE -- "$1" out
  result "$2"
}

is_json() {
  if command -v python3 >/dev/null; then
    python3 -c 'import json, sys; sys.exit(not isinstance(json.load(sys.stdin), dict))' <out
    result "$1"
  else
    skip "$1" "no python3 here to judge JSON"
  fi
}

# hlo FILE PARAMETER_SHAPE ROOT: a module m of one parameter p and one instruction.
hlo() { printf 'HloModule m\nENTRY main {\n  p = %s parameter(0)\n  ROOT r = %s\n}\n' "$2" "$3" >"$1"; }

# npy DESCR SHAPE DATA [FORTRAN_ORDER]: a .npy file on stdout; the data as printf writes it.
npy() {
  printf '\x93NUMPY\x01\x00\x76\x00'
  printf '%-117s\n' "{'descr': '$1', 'fortran_order': ${4:-False}, 'shape': $2, }"
  printf "$3"
}

# bytes FILE: what follows the 128 bytes of header of a small .npy file, in hexadecimal.
bytes() { tail -c +129 "$1" | od -An -v -tx1 | tr -d ' \n'; }

# holds NAME FILE DESCR SHAPE HEX: the file is such an array.
holds() {
  head -c 128 "$2" | tail -c +11 | grep -aqF "{'descr': '$3', 'fortran_order': False, 'shape': $4, }" &&
    [[ $(bytes "$2") == "$5" ]]
  result "$1"
}

hlo f32.hlo 'f32[2,3]' 'f32[2,3] negate(p)'
hlo none.hlo 'f32[0,3]' 'f32[0,3] negate(p)'
