#!/bin/sh
# Prints the job's log. It is made when it is first read; LOG_MEGABYTES says how large.
set -eu
log="nightly-billing-${LOG_MEGABYTES:=200}.log"
if [ ! -f "$log" ]; then
    # Beside it first: somebody else may be making it too, under any process id.
    made=$(mktemp "$log.XXXXXX")
    trap 'rm -f "$made"' EXIT
    awk -v megabytes="$LOG_MEGABYTES" -f make-log.awk > "$made"
    mv "$made" "$log"
fi
exec cat "$log"
