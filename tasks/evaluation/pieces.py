"""Folds and seeds of fine-tuning, made by other processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from models.encoder.config import EncoderConfig
from tasks.evaluation.kind import TunedKind
from tasks.evaluation.kinds import kind_of
from tasks.evaluation.settings import EvaluationSettings
from tasks.evaluation.systems import Candidate
from tasks.sending import received_encoder, sent_encoder
from tasks.site import Site
from tasks.stage.spread import errand, spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tasks.evaluation.kinds import FoundSets


def tune_elsewhere(site: Site, candidates: Sequence[Candidate], found: FoundSets, config: EvaluationSettings) -> None:
    """Have all folds and seeds made by the site's runner; whoever asks for the scores finds them made."""
    store = site.open_store()
    errands = []
    for candidate in candidates:
        name, revision = sent_encoder(store, candidate.encoder)
        errands += [
            tune_piece.errand(
                f"{candidate.label} on {protocol}, {number + 1} of {kind.pieces(found.sets[protocol], config)}",
                label=candidate.label,
                encoder=name,
                revision=revision,
                network=candidate.config,
                protocol=protocol,
                number=number,
                settings=config,
            )
            for kind, _ in found.tuned()
            for protocol in found.sets
            if kind.knows(protocol)
            for number in range(kind.pieces(found.sets[protocol], config))
        ]
    spread(site, errands)


@errand
def tune_piece(
    site: Site,
    label: str,
    encoder: str,
    revision: str | None,
    network: EncoderConfig,
    protocol: str,
    number: int,
    settings: EvaluationSettings,
) -> None:
    """Fine-tune an encoder for one fold or seed of a protocol, whose data this machine finds by name."""
    candidate = Candidate(label=label, encoder=received_encoder(site, encoder, revision), config=network)
    own = kind_of(protocol)
    assert isinstance(own, TunedKind)  # the sender asked its kind for pieces
    own.piece(site, candidate, own.find(site, protocol), number, settings)
