"""Descriptions of fields: docstrings below them, inherited, replaced or given, in forms too."""

from typing import Annotated

from pydantic import Field, create_model

from bsl.storage.record import Record, description


class Base(Record):
    """A record."""

    size: int = 1
    """Number of
    parts."""
    plain: int = 2


class Inherited(Base):
    """A record with the fields of another."""

    plain: int = 3
    """Now with a docstring."""
    given: Annotated[int, Field(description="Its own.")] = 4
    """Not used."""


def test_description_is_the_field_s_own_or_the_docstring_below_it_and_is_in_forms():
    assert [description(Base, name) for name in ("size", "plain")] == ["Number of\nparts.", ""]
    assert "description" not in Base.model_json_schema()["properties"]["plain"]
    shown = Inherited.model_json_schema()["properties"]
    for name, text in (("size", "Number of\nparts."), ("plain", "Now with a docstring."), ("given", "Its own.")):
        assert description(Inherited, name) == shown[name]["description"] == text


def test_record_without_source_has_no_descriptions():
    made = create_model("Made", __base__=Record, size=(int, 1))
    assert description(made, "size") == ""
