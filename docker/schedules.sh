#!/bin/sh
# Give deployment nli a weekly schedule, unless it has schedules; run it once after `prefect deploy`, it may be repeated.
# Schedules are not in prefect.yaml: each `prefect deploy` would delete those of the UI, and make a paused one active.
set -eu
schedules=$(NO_COLOR=1 prefect deployment schedule ls bsl-pipeline/nli)
case $schedules in
    *cron*|*interval*|*rrule*) ;;
    *) prefect deployment schedule create bsl-pipeline/nli --cron "0 2 * * 0" --timezone UTC ;;
esac
