"""What a server does by itself: it marks dead runs as Crashed, and tells somebody of failed ones.

Design choices
- Only runs with our tag, which all deployments of prefect.yaml and all commands of ours give: runs of other programs
  beat more slowly, and would be taken for dead.
- A webhook's address is a secret. It goes into a block, which the server encrypts; what is templated names it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final, cast

from flows.changes import Change

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from prefect.blocks.notifications import CustomWebhookNotificationBlock
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.events.actions import ActionTypes
    from prefect.events.schemas.automations import AutomationCore, EventTrigger

LOST_SECONDS: Final = 90
TAG: Final = "bsl"
WEBHOOK: Final = "bsl-failures"

_LOST: Final = "bsl: runs without a heartbeat have crashed"
_FAILED: Final = "bsl: tell of failed runs"
_HEARTBEAT: Final = "prefect.flow-run.heartbeat"
_BODY: Final = (
    "{{ flow.name }}, run {{ flow_run.name }}: {{ flow_run.state.name }}. {{ flow_run.state.message }} "
    "{{ flow_run|ui_url }}"
)


def automation_changes(client: SyncPrefectClient, webhook: str | None) -> Iterator[Change]:
    """What differs of the automations.

    Args:
        client: of the server.
        webhook: address that is told of failed runs, as JSON with a field `text`; None keeps the one that is there.
    """
    there = {automation.name: automation for automation in client.read_automations()}
    yield from _automation(there.get(_LOST), _lost())
    block = _webhook_block(client)
    if webhook is None and block is None:
        yield Change(
            f"automation {_FAILED}", "missing", "an address to tell: set BSL_NOTIFY_URL, such as a Slack webhook's"
        )
        return
    if webhook is not None and webhook != _address(block):
        yield Change(
            f"block {WEBHOOK}",
            "missing" if block is None else "another address",
            "the address in BSL_NOTIFY_URL",
            lambda _: _save_webhook(webhook),
        )
    if block is None:
        yield Change(
            f"automation {_FAILED}",
            "missing",
            "failed and crashed runs are told of",
            lambda server: server.create_automation(_failed(_id_of(_webhook_block(server)))),
        )
        return
    yield from _automation(there.get(_FAILED), _failed(_id_of(block)))


def _automation(there: AutomationCore | None, wanted: AutomationCore) -> Iterator[Change]:
    subject = f"automation {wanted.name}"
    if there is None:
        yield Change(subject, "missing", wanted.description, lambda server: server.create_automation(wanted))
    elif (there.trigger, there.actions) != (wanted.trigger, wanted.actions):
        kept = wanted.model_copy(update={"enabled": there.enabled})
        number = cast("UUID", getattr(there, "id"))  # noqa: B009 - read ones have it, wanted ones do not
        yield Change(subject, "another rule", wanted.description, lambda server: server.update_automation(number, kept))


def _lost() -> AutomationCore:
    from prefect.client.schemas.objects import StateType
    from prefect.events.actions import ChangeFlowRunState
    from prefect.events.schemas.automations import Posture

    # Any event of the run will do, so that a run that ended, waits or was suspended is not taken for dead.
    trigger = _trigger(
        posture=Posture.Proactive,
        after={_HEARTBEAT},
        expect={"prefect.flow-run.*"},
        threshold=1,
        within=timedelta(seconds=LOST_SECONDS),
    )
    message = f"no heartbeat for {LOST_SECONDS} s: its process or machine is gone; what it finished is in the store"
    return _rule(
        _LOST,
        f"after {LOST_SECONDS} s without a heartbeat a run is Crashed",
        trigger,
        ChangeFlowRunState(state=StateType.CRASHED, message=message),
    )


def _failed(block: UUID) -> AutomationCore:
    from prefect.events.actions import SendNotification
    from prefect.events.schemas.automations import Posture

    trigger = _trigger(
        posture=Posture.Reactive,
        expect={"prefect.flow-run.Failed", "prefect.flow-run.Crashed", "prefect.flow-run.TimedOut"},
        threshold=1,
        within=timedelta(0),
    )
    action = SendNotification(block_document_id=block, subject="bsl-pipeline", body=_BODY)
    return _rule(_FAILED, "failed and crashed runs are told of", trigger, action)


def _trigger(**settings: object) -> EventTrigger:
    from prefect.events.schemas.automations import EventTrigger

    return EventTrigger.model_validate(
        {
            "match": {"prefect.resource.id": "prefect.flow-run.*"},
            "match_related": {"prefect.resource.role": "tag", "prefect.resource.id": f"prefect.tag.{TAG}"},
            "for_each": {"prefect.resource.id"},
            **settings,
        }
    )


def _rule(name: str, description: str, trigger: EventTrigger, action: ActionTypes) -> AutomationCore:
    from prefect.events.schemas.automations import AutomationCore

    return AutomationCore(name=name, description=description, trigger=trigger, actions=[action], tags=[TAG])


def _webhook_block(client: SyncPrefectClient) -> CustomWebhookNotificationBlock | None:
    from prefect.blocks.core import Block
    from prefect.blocks.notifications import CustomWebhookNotificationBlock as Webhook
    from prefect.exceptions import ObjectNotFound

    try:
        document = client.read_block_document_by_name(WEBHOOK, Webhook.get_block_type_slug())
    except ObjectNotFound:
        return None
    return cast("Webhook", Block._from_block_document(document))


def _save_webhook(address: str) -> None:
    from prefect.blocks.notifications import CustomWebhookNotificationBlock as Webhook

    block = Webhook(
        name="bsl-pipeline",
        url="{{address}}",
        json_data={"text": "{{subject}}: {{body}}"},
        secrets={"address": address},
    )
    block.save(WEBHOOK, overwrite=True)


def _address(block: CustomWebhookNotificationBlock | None) -> str | None:
    return None if block is None else cast("str", block.secrets.get_secret_value().get("address"))


def _id_of(block: CustomWebhookNotificationBlock | None) -> UUID:
    assert block is not None  # it was made before
    return cast("UUID", block._block_document_id)
