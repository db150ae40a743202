#!/bin/sh
# A function in shell: passes its input on as it is, and says how much of it there was.
set -eu
input=$(mktemp)
trap 'rm -f "$input"' EXIT
cat >"$input"
printf 'count: %s bytes\n' "$(wc -c <"$input")" >&2
cat "$input"
