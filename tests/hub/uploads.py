"""Answer requests that write to the Hub: a new repository, its large files, and a commit.

POST /api/repos/create, /api/validate-yaml             a new repository; its card
POST /api/models/<id>/preupload/main                   which files go to LFS
POST /<id>.git/info/lfs/objects/batch                  upload addresses of these files
PUT  /lfs/<sha256>                                     one of these files
POST /api/models/<id>/commit/main                      a commit, one operation per line
"""

import base64
import hashlib
import json
import re

BIG = (".safetensors", ".bin", ".parquet", ".tar", ".gz", ".spm", ".model", ".onnx")
_OF_REPOSITORY = re.compile(
    r"/(?:api/models/)?([^/]+/[^/.]+)(?:/(preupload|commit)/main|\.git/info/lfs/objects/(batch))"
)


def written(routes, path, body):
    hub, lines = routes.hub, body.splitlines() if path.endswith("/commit/main") else []
    if path == "/api/validate-yaml":
        routes._json({"errors": [], "warnings": []})
    elif path.startswith("/lfs/"):
        hub.uploaded[hashlib.sha256(body).hexdigest()] = body
        routes._json({})
    elif path == "/api/repos/create" or _OF_REPOSITORY.fullmatch(path):
        if not routes.headers.get("Authorization"):
            routes._error(401, "", "Invalid username or password.")
            return True
        asked = [json.loads(line) for line in lines or [body]]
        _write(routes, path, asked)
    else:
        return False
    return True


def _write(routes, path, asked):
    hub, found = routes.hub, _OF_REPOSITORY.fullmatch(path)
    if found is None:
        name = f"{asked[0]['organization']}/{asked[0]['name']}"
        if ("models", name) in hub.repositories:
            routes._error(409, "", "You already created this model repo")
            return
        hub.add("models", name, {}, private=asked[0]["visibility"] == "private")
        routes._json({"url": f"{hub.url}/{name}"})
    elif found[2] == "preupload":
        modes = {True: "lfs", False: "regular"}
        files = [(file["path"], modes[file["path"].endswith(BIG)]) for file in asked[0]["files"]]
        routes._json({"files": [{"path": path, "uploadMode": mode, "shouldIgnore": False} for path, mode in files]})
    elif found[3]:
        places = [(each, {"upload": {"href": f"{hub.url}/lfs/{each['oid']}"}}) for each in asked[0]["objects"]]
        routes._json({"objects": [{**each, "actions": actions} for each, actions in places]})
    else:
        small = {
            line["value"]["path"]: base64.b64decode(line["value"]["content"]) for line in asked if line["key"] == "file"
        }
        big = {line["value"]["path"]: hub.uploaded[line["value"]["oid"]] for line in asked if line["key"] == "lfsFile"}
        commit = hub.add("models", found[1], small | big, private=hub.repositories["models", found[1]].private)
        routes._json({"commitUrl": f"{hub.url}/{found[1]}/commit/{commit}", "commitOid": commit})
