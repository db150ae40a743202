#!/bin/sh
# A function in shell that takes its time: passes its input on after as many seconds as its
# configuration says.
set -eu
input=$(cat)
seconds=0
while read -r key value; do
  if [ "$key" = "seconds:" ]; then
    seconds=$value
  fi
done <<END
$input
END
sleep "$seconds"
printf '%s\n' "$input"
