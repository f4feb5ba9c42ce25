"""The OpenAPI document of a service, and a page for people that is made of it."""

import html
import json
import re
import shlex
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode

from labelspace.serve.operations import Operation
from labelspace.version import __version__

PROBLEMS = {
    400: "The body is no JSON, or the model cannot do what it asks.",
    401: "No valid key came.",
    404: "There is no such model.",
    408: "The body did not come in time.",
    413: "A text or the body is too large, or there are too many texts or options.",
    415: "The body is not JSON, or packed in an unknown way.",
    422: "A value is wrong; the message names its place.",
    503: "Too many texts wait; come again after Retry-After seconds.",
}


def described(operations: Sequence[Operation], *, keyed: bool = False, without: Sequence[str] = ()) -> dict[str, Any]:
    """Return the OpenAPI document.

    Args:
        operations: what the service answers.
        keyed: whether a key is asked for.
        without: paths that need none.
    """
    wanted: list[tuple[Any, JsonSchemaMode, TypeAdapter[Any]]] = []
    for number, operation in enumerate(operations):
        for key in ("gives", "problem"):
            wanted.append(((number, key), "serialization", TypeAdapter(getattr(operation, key))))
        if operation.takes is not None:
            wanted.append(((number, "takes"), "validation", TypeAdapter(operation.takes)))
    schemas, parts = TypeAdapter.json_schemas(wanted, ref_template="#/components/schemas/{model}")
    found = {key: schema for (key, _), schema in schemas.items()}
    paths: dict[str, Any] = {}
    for number, operation in enumerate(operations):
        free = operation.path in without
        own = found[number, "gives"], found.get((number, "takes")), found[number, "problem"]
        told = _operation(operation, *own, keyed and not free)
        paths.setdefault(operation.path, {})[operation.method.lower()] = {**told, "security": []} if free else told
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "labelspace", "version": __version__},
        "paths": paths,
        "components": {"schemas": parts.get("$defs", {})},
    }
    if keyed:
        document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"key": []}]
    return document


def _operation(operation: Operation, gives: Any, takes: Any, problem: Any, keyed: bool) -> dict[str, Any]:
    parameters = re.findall(r"{(\w+)}", operation.path)
    problems = set(PROBLEMS) - {401} if takes is not None else {404} if parameters else set()
    responses: dict[str, Any] = {"200": _response("The answer.", gives)}
    for status in sorted(problems | ({401} if keyed else set())):
        responses[str(status)] = _response(PROBLEMS[status], problem)
    if "503" in responses:
        responses["503"]["headers"] = {"Retry-After": {"required": True, "schema": {"type": "integer"}}}
    found: dict[str, Any] = {"summary": operation.summary, "responses": responses}
    if parameters:
        found["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in parameters
        ]
    if takes is not None:
        content: dict[str, Any] = {"schema": takes}
        if operation.example is not None:
            content["example"] = operation.example
        found["requestBody"] = {"required": True, "content": {"application/json": content}}
    return found


def _response(description: str, schema: Any) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}"
    "pre{padding:.75rem;overflow:auto;border:1px solid #8888;border-radius:6px}code{font-size:.9em}"
    "h2{margin-top:2rem}"
)


def page(operations: Sequence[Operation], models: Sequence[str], address: str, *, keyed: bool = False) -> str:
    """Return a page with every operation and a command that calls it; nothing is loaded from elsewhere."""
    key = " -H 'Authorization: Bearer KEY'" if keyed else ""
    parts = [
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>labelspace</title>",
        f"<meta name='viewport' content='width=device-width'><style>{_STYLE}</style><main><h1>labelspace</h1>",
        f"<p>Models: {html.escape(', '.join(models))}. Description for machines: "
        "<a href='openapi.json'>openapi.json</a>. Counts: <a href='metrics'>metrics</a>.</p>",
    ]
    for operation in operations:
        parts.append(f"<h2><code>{operation.method} {html.escape(operation.path)}</code></h2>")
        parts.append(f"<p>{html.escape(operation.summary)}</p>")
        if operation.takes is None or operation.example is not None:
            path = operation.path.replace("{name}", quote(models[0], safe="")).replace("{version}", "1")
            command = f"curl http://{address}{path}{key}"
            if operation.example is not None:
                body = json.dumps(operation.example, indent=2).replace('"MODEL"', json.dumps(models[0]))
                command += f" -H 'Content-Type: application/json' -d {shlex.quote(body)}"
            parts.append(f"<pre><code>{html.escape(command)}</code></pre>")
    return "".join([*parts, "</main></html>"])
