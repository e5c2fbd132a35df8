#!/bin/sh
# Prepare a Prefect server for the deployments of prefect.yaml. Run it once per server; it may be repeated.
#   PREFECT_API_URL=http://127.0.0.1:4200/api docker/server-setup.sh
# BSL_NOTIFY_URL (optional): webhook for failed runs; it receives JSON with a field `text` (Slack, Mattermost).
set -eu
here=$(dirname "$0")

# A server that has just been started answers after some seconds.
python -c '
import sys, time
from prefect.client.orchestration import get_client
end, failure = time.monotonic() + 120, None
with get_client(sync_client=True) as client:
    while (failure := client.api_healthcheck()) and time.monotonic() < end:
        time.sleep(1)
    sys.exit(failure and f"{client.api_url} does not answer ({failure}). Start the server, or correct PREFECT_API_URL.")'

# One pool for all deployments. A worker runs flows as processes: start one worker per GPU with `--limit 1`. The pool has
# no limit, because its slots would stay occupied after kill -9 of a worker.
prefect work-pool inspect gpu > /dev/null 2>&1 || prefect work-pool create gpu --type process

# Runs on queue `urgent` start first, runs on `background` last; deployments use `default`.
prefect work-queue inspect urgent --pool gpu > /dev/null 2>&1 || prefect work-queue create urgent --pool gpu --priority 1
prefect work-queue inspect background --pool gpu > /dev/null 2>&1 || prefect work-queue create background --pool gpu

# Mark runs whose process is gone as Crashed.
prefect automation inspect bsl-crashed > /dev/null 2>&1 || prefect automation create --from-file "$here/crashed.yaml"

# Report failed and crashed runs to the webhook. The address is a secret, so it is saved in an encrypted block.
if [ -n "${BSL_NOTIFY_URL:-}" ]; then
    block=$(python -c '
import os
from prefect.blocks.notifications import CustomWebhookNotificationBlock as Webhook
secrets = {"address": os.environ["BSL_NOTIFY_URL"]}
block = Webhook(name="bsl-pipeline", url="{{address}}", json_data={"text": "{{subject}}: {{body}}"}, secrets=secrets)
print(block.save("bsl-failures", overwrite=True))')
    folder=$(mktemp -d)
    sed "s/BLOCK_ID/$block/" "$here/notify.yaml" > "$folder/notify.yaml"
    prefect automation inspect bsl-notify > /dev/null 2>&1 || prefect automation create --from-file "$folder/notify.yaml"
    rm -r "$folder"
fi
