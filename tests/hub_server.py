"""A stand-in for the hub: the few of its routes that `load` and `push_to_hub` use, on real connections.

Repositories live in memory. A test may break the connection in the middle of a file, or let a route fail.
"""

import base64
import hashlib
import json
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "hf_rightToken"


@dataclass
class Repository:
    """The commits of a repository, the newest last: hash, message, and content by path."""

    private: bool = False
    gated: bool = False
    commits: list[tuple[str, str, dict[str, bytes]]] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)  # sizes that its list of files makes up

    def commit(self, message: str, files: dict[str, bytes]) -> str:
        oid = hashlib.sha1(f"{len(self.commits)} {message} {sorted(files)}".encode()).hexdigest()
        self.commits.append((oid, message, files))
        return oid

    def at(self, revision: str) -> tuple[str, str, dict[str, bytes]] | None:
        if revision == "main":
            return self.commits[-1]
        return next((commit for commit in self.commits if commit[0] == revision), None)

    @property
    def files(self) -> dict[str, bytes]:
        return self.commits[-1][2]


class Hub:
    """What the server holds, and what tests look at."""

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.asked: list[str] = []
        self.break_in: str = ""  # part of a path whose answer stops half-way
        self.fail: dict[str, int] = {}  # part of a path -> status
        self.address = ""

    def add(self, name: str, files: dict[str, bytes], **options: Any) -> Repository:
        repository = Repository(**options)
        repository.commit("first", files)
        self.repositories[name] = repository
        return repository


class _Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer(b"")

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers.get("Content-Length", 0))))

    def _answer(self, body: bytes) -> None:
        url = urllib.parse.urlsplit(self.path)
        path = urllib.parse.unquote(url.path)
        self.hub.asked.append(f"{self.command} {path}")
        if self.hub.break_in and self.hub.break_in in path and self.command != "HEAD":
            self._break(path)
            return
        for part, status in self.hub.fail.items():
            if part in path:
                self._refuse(status, "")
                return
        if path == "/api/validate-yaml":
            self._json({"errors": [], "warnings": []})
        elif path == "/api/repos/create":
            self._create(json.loads(body))
        elif path.startswith("/api/models/"):
            owner, name, *rest = path.removeprefix("/api/models/").split("/", 3)
            self._api(f"{owner}/{name}", rest, body)
        elif "/resolve/" in path:
            owner, name, _, revision, file = path.removeprefix("/").split("/", 4)
            self._file(f"{owner}/{name}", revision, file)
        else:  # what only real hubs have
            self._refuse(404, "")

    def _api(self, name: str, rest: list[str], body: bytes) -> None:
        repository = self._allowed(name, write=bool(body))
        if repository is None:
            return
        what, revision = (*rest, "main")[:2] if rest else ("revision", "main")
        commit = repository.at(urllib.parse.unquote(revision.split("/")[0]))
        if commit is None:
            self._refuse(404, "RevisionNotFound")
            return
        oid, _, files = commit
        sizes = {file: repository.sizes.get(file, len(content)) for file, content in files.items()}
        if what == "revision":
            siblings = [{"rfilename": file, "size": size} for file, size in sizes.items()]
            self._json({"id": name, "sha": oid, "private": repository.private, "siblings": siblings})
        elif what == "tree":
            self._json([{"type": "file", "path": file, "size": size, "oid": "0"} for file, size in sizes.items()])
        elif what == "preupload":
            asked = json.loads(body)["files"]
            how = {"uploadMode": "regular", "shouldIgnore": False}
            self._json({"files": [{"path": one["path"], **how} for one in asked]})
        elif what == "commit":
            self._commit(name, repository, [json.loads(line) for line in body.splitlines()])

    def _commit(self, name: str, repository: Repository, lines: list[dict[str, Any]]) -> None:
        head, files = lines[0]["value"], dict(repository.files)
        if head.get("parentCommit") != repository.commits[-1][0]:
            self._refuse(412, "")
            return
        for line in lines[1:]:
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            else:
                del files[value["path"]]
        oid = repository.commit(head["summary"], files)
        self._json({"commitUrl": f"{self.hub.address}/{name}/commit/{oid}", "commitOid": oid})

    def _create(self, asked: dict[str, Any]) -> None:
        if self._token() != TOKEN:
            self._refuse(401, "")
            return
        name = f"{asked['organization']}/{asked['name']}" if asked.get("organization") else asked["name"]
        self.hub.add(name, {".gitattributes": b""}, private=asked.get("visibility") == "private")
        self._json({"url": f"{self.hub.address}/{name}"})

    def _file(self, name: str, revision: str, file: str) -> None:
        repository = self._allowed(name)
        if repository is None:
            return
        commit = repository.at(revision)
        if commit is None or file not in commit[2]:
            self._refuse(404, "RevisionNotFound" if commit is None else "EntryNotFound")
            return
        etag = hashlib.sha1(commit[2][file]).hexdigest()
        self._send(200, commit[2][file], {"ETag": f'"{etag}"', "X-Repo-Commit": commit[0]})

    def _allowed(self, name: str, *, write: bool = False) -> Repository | None:
        repository = self.hub.repositories.get(name)
        trusted = self._token() == TOKEN
        if repository is None or (repository.private and not trusted):
            self._refuse(401 if self._token() is None else 404, "RepoNotFound")
        elif repository.gated or (write and not trusted):
            self._refuse(403, "GatedRepo" if repository.gated else "")
        else:
            return repository
        return None

    def _token(self) -> str | None:
        given = self.headers.get("Authorization")
        return given.removeprefix("Bearer ") if given else None

    def _break(self, path: str) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "100000")
        self.end_headers()
        self.wfile.write(b"half of it")
        self.wfile.flush()
        self.close_connection = True

    def _refuse(self, status: int, code: str) -> None:
        self._send(status, b"", {"X-Error-Code": code} if code else {})

    def _json(self, value: Any) -> None:
        self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextmanager
def running_hub() -> Iterator[Hub]:
    """Yield a hub that listens on this machine."""
    hub = Hub()
    server = ThreadingHTTPServer(("localhost", 0), type("Handler", (_Handler,), {"hub": hub}))
    server.daemon_threads = True
    hub.address = f"http://localhost:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
