"""How verbs start a flow: a server to talk to, the site, what is missing said before the run, and how it ended."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flows.server import EmbeddedServer, start_server, use_server
from flows.site import site_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable

    from flows.config import PipelineConfig
    from tasks.site import Site


@dataclass(frozen=True)
class Start:
    """What a verb has before it runs its flow.

    Attributes:
        site: where the flow runs.
        embedded: the server of this command, which may still be starting; None for one that PREFECT_API_URL names.
    """

    site: Site
    embedded: EmbeddedServer | None

    def run(self, flow: Callable[..., Any], configs: Iterable[PipelineConfig], **parameters: object) -> Any:  # noqa: ANN401 - what the flow returns
        """The flow's result, or None with a line on the error stream if it did not finish.

        Args:
            flow: a Prefect flow with a parameter `site`.
            configs: all that the flow will run, whose sources are looked for first.
            parameters: the flow's others.

        Raises:
            SourceError: a source is missing: said alone, before a run starts that it would end.
        """
        from tasks.ingest import locate_sources

        for config in configs:
            locate_sources(self.site, config.ingest)
        if self.embedded is not None:
            self.embedded.wait()
        state = flow(**parameters, site=self.site, return_state=True)
        if state.is_completed():
            return state.result()
        print(f"bsl: the run did not finish: {state.message}\nWhat was finished is kept; run again.", file=sys.stderr)
        return None


def begin(arguments: argparse.Namespace) -> Start:
    """Settle the server; before anything imports Prefect, whose settings are read then, and so before any flow."""
    use_server()
    embedded = start_server()
    return Start(site_of(vars(arguments)), embedded)
