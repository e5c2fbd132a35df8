"""Prefect's run form of a configuration: every field optional, and only the changed ones sent to a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, Field, create_model
from pydantic_core import core_schema

from bsl.storage.record import Record, description

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema


def partial(model: type[BaseModel], first: Sequence[str] = ()) -> type[BaseModel]:
    """Return a pydantic model with every field optional, also the nested ones: the fields that a user may override.

    In Prefect, a nested parameter of a run replaces the deployment's parameter completely. Optional fields that
    `override` merges leave the recipe's other fields unchanged. The form shows the fields `first` first.
    """
    named = model.model_fields.get("name")
    chosen = str(named.default) if named is not None and get_origin(named.annotation) is Literal else None
    fields: dict[str, Any] = {}
    for name in dict.fromkeys((*first, *model.model_fields)):
        field = model.model_fields[name]
        default = chosen if name == "name" else None  # choosing an objective in the form sends its name
        kind = _overridable(field.annotation)
        bounded = Annotated[kind, *field.metadata] if field.metadata else kind
        fields[name] = (bounded | None, Field(default, description=description(model, name)))
    return create_model(
        f"{model.__name__}Overrides",
        __base__=Record,
        __cls_kwargs__={"title": chosen or "Change"},  # the label of its button
        __doc__=model.__doc__,
        **fields,
    )


def _overridable(kind: Any) -> Any:  # noqa: ANN401 - an annotation: a type, a union or another form
    union = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    members = get_args(union)
    if len(members) > 1 and all(_is_named(member) for member in members):
        # Only a name chooses an objective or a transform; only fields change the one in the recipe.
        names = tuple(member.model_fields["name"].default for member in members)
        return Literal[names] | Union[tuple(map(partial, members))]  # noqa: UP007
    if type(None) in get_args(kind):
        return Union[tuple(_overridable(member) for member in get_args(kind))]  # noqa: UP007
    return partial(kind) if isinstance(kind, type) and issubclass(kind, BaseModel) else kind


def _is_named(kind: Any) -> bool:  # noqa: ANN401 - an annotation: a type, a union or another form
    return isinstance(kind, type) and issubclass(kind, BaseModel) and "name" in kind.model_fields


@dataclass(frozen=True)
class Form:
    """Annotation that shows every field of a model as optional in Prefect's run form, and drops unchanged fields.

    The form sends all fields of the model, null where nothing was entered. In any other mapping null is a value, as in
    `--set training.collapse=null`.

    The parameter is settings if there is a `base`, which a mapping changes; else it is the mapping itself.
    """

    model: type[BaseModel]
    base: BaseModel | None = None

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:  # noqa: ANN401
        return core_schema.no_info_before_validator_function(self._changes, handler(source))

    def __get_pydantic_json_schema__(self, _: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(self.model.__pydantic_core_schema__)

    def _changes(self, given: object) -> object:
        if not isinstance(given, Mapping):
            return given
        changes = _without_nulls(given) if given.keys() >= self.model.model_fields.keys() else given
        if self.base is None:
            return changes
        from bsl.flows.config import override  # slow import, needed only for mappings

        return override(self.base, changes)


def _without_nulls(section: Any) -> Any:  # noqa: ANN401 - a section or a value
    """Return a section without nulls and without inner sections of nulls only."""
    if not isinstance(section, Mapping):
        return section
    inner = {name: _without_nulls(value) for name, value in section.items()}
    return {name: value for name, value in inner.items() if value is not None and value != {}}


def form_of(model: type[BaseModel], first: Sequence[str] = ()) -> Any:  # noqa: ANN401 - a type for annotations
    """Return the type of a flow parameter that changes a configuration: a mapping in the form `override` takes.

    `first` is as in `partial`.
    """
    return Annotated[dict[str, Any], Form(partial(model, first))]


def settings_of(base: BaseModel) -> Any:  # noqa: ANN401 - a type for annotations
    """Return the type of a flow parameter of complete settings: settings, or a mapping of changes to `base`."""
    return Annotated[type(base), Form(partial(type(base)), base)]
