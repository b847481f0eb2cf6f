"""The ground of every wire model: camelCase names, strict types, unknown fields ignored; shapes of ids and paths.

Knows nothing of JSON-RPC and holds no rule about sessions: a model says what a well-formed value is, no more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic.alias_generators import to_camel


class InvalidParams(Exception):  # noqa: N818 -- JSON-RPC's own word for it
    """Params that do not validate. `field`: path of the first bad field, `reason`: why, `problems`: all of them."""

    def __init__(self, field: str, reason: str, problems: list[dict[str, str]] | None = None) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason
        self.problems = problems if problems is not None else [{"field": field, "reason": reason}]

    @classmethod
    def of(cls, error: ValidationError) -> Self:
        """From pydantic's error, without repeating the values (they may be long or private)."""
        found = [
            {"field": path_text(item["loc"]), "reason": item["msg"]}
            for item in error.errors(include_url=False, include_context=False, include_input=False)[:20]
        ]
        return cls(found[0]["field"], found[0]["reason"], found)


class Wire(BaseModel):
    """Base of all. Optional fields (`?` in the documents) are `X | None = None`: null and absent are the same."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        strict=True,
        extra="ignore",
        frozen=True,
        defer_build=True,  # validators are built on first use: start-up stays short
        protected_namespaces=(),
    )


class Empty(Wire):
    """`{}`."""


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        msg = "must be an absolute path"
        raise ValueError(msg)
    return path


def _no_nul(text: str) -> str:
    if "\0" in text:
        msg = "must not contain NUL"
        raise ValueError(msg)
    return text


Id = Annotated[str, StringConstraints(min_length=1, max_length=128), AfterValidator(_no_nul)]
Line = Annotated[str, StringConstraints(max_length=1000), AfterValidator(_no_nul)]
Path = Annotated[str, StringConstraints(min_length=1, max_length=4096), AfterValidator(_no_nul)]
AbsolutePath = Annotated[Path, AfterValidator(_absolute)]
Integer = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
Natural = Annotated[int, Field(ge=0, le=2**63 - 1)]
Limit = Annotated[int, Field(ge=1, le=10_000)]
Milliseconds = Annotated[int, Field(ge=0, description="milliseconds since the epoch, UTC, by the server's clock")]
Revision = Annotated[int, Field(ge=0, description="revision of the database at this change")]


def path_text(path: tuple[int | str, ...]) -> str:
    """A field's place as people write it: `edits[2].messageId`; "params" for the whole."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text or "params"


def validated(model: type[Wire], params: Mapping[str, Any]) -> dict[str, Any]:
    """`params` as a plain dict with camelCase keys: unknown fields dropped, optional ones that were not given absent,
    documented defaults filled in.

    Raises InvalidParams.
    """
    try:
        value = model.model_validate(params)
    except ValidationError as error:
        raise InvalidParams.of(error) from None
    plain = value.model_dump(by_alias=True, exclude_unset=True)
    for name, info in model.model_fields.items():
        if name not in value.model_fields_set and not info.is_required() and info.default is not None:
            plain[info.alias or name] = info.default
    return plain
