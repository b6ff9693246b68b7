#!/bin/sh
# Prints the job's log. It is made when it is first read; LOG_MEGABYTES says how large.
set -eu
log="nightly-billing-${LOG_MEGABYTES:=200}.log"
if [ ! -f "$log" ]; then
    awk -v megabytes="$LOG_MEGABYTES" -f make-log.awk > "$log.$$"
    mv "$log.$$" "$log"
fi
exec cat "$log"
