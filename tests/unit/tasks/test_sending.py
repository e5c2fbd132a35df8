"""A model that only this machine has is found by another one, under the identity that it has here."""

import pytest

from models.encoder.export import export_sentence_transformers
from storage.store import Store
from storage.weights import resolve_model
from tasks.sending import received_model, sent_model
from tasks.site import Site
from tests.tiny_encoder import tiny_encoder


@pytest.fixture
def folder(tmp_path):
    export_sentence_transformers(*tiny_encoder(tmp_path / "in"), tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize("graph", ["", "model.onnx", "onnx/model_int8.onnx"])
def test_a_folder_and_a_graph_in_it_arrive_whole(folder, tmp_path, graph):
    if graph:
        (folder / graph).parent.mkdir(exist_ok=True)
        (folder / graph).write_bytes(b"a graph")
    here = resolve_model(str(folder / graph))
    site = Site(store=str(tmp_path / "store"))
    there = received_model(site, *sent_model(Store(site.store), here))
    assert there.identity == here.identity
    assert not there.folder.is_relative_to(folder)
