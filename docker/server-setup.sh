#!/bin/sh
# Prepare a Prefect server for the deployments of prefect.yaml. Run it once a server; again it adds only what is missing.
#   PREFECT_API_URL=http://127.0.0.1:4200/api docker/server-setup.sh
# BSL_NOTIFY_URL (optional): webhook for failed runs, which gets JSON with a field `text` (Slack, Mattermost).
set -eu
here=$(dirname "$0")

# One pool for all deployments. Its runs are processes of a worker: start one worker a GPU with `--limit 1`. A limit of
# the pool itself would outlive a worker that is killed with -9.
prefect work-pool inspect gpu > /dev/null 2>&1 || prefect work-pool create gpu --type process

# A run on queue `urgent` starts before all others, one on `background` after them; deployments use `default`.
prefect work-queue inspect urgent --pool gpu > /dev/null 2>&1 || prefect work-queue create urgent --pool gpu --priority 1
prefect work-queue inspect background --pool gpu > /dev/null 2>&1 || prefect work-queue create background --pool gpu

# Runs whose process is gone become Crashed.
prefect automation inspect bsl-crashed > /dev/null 2>&1 || prefect automation create --from-file "$here/crashed.yaml"

# Failed and crashed runs are reported to the webhook. Its address is a secret: it goes into an encrypted block.
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
