#!/usr/bin/env bash
# QUERY (RFC 10008) with content, redirected by each status, as requests, httpx and curl send it to the target.
#
# Guess: after 301, 302, 307 and 308 a client sends QUERY and its content again, and GET after 303 (RFC 10008); or it makes GET of it, as of POST.
# Seen: requests 2.34.2 sends QUERY without its content after 301, and GET after 302. httpx 0.28.1 sends QUERY with content after 301, and GET
# after 302. curl 7.88.1 with -L -X QUERY sends QUERY without its content after 301, 302 and 303, for -X holds for every request. An empty QUERY may mean "all".
#
# Needs python 3.10 or newer with pip, curl and a registry. Exits with 1 if the output is no longer the one below.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target packages requests==2.34.2 httpx==0.28.1
cat >look.py <<'PY'
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx
import requests

arrived = []


class Handler(BaseHTTPRequestHandler):
    def answer(self):
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/target":
            arrived.append(f"{self.command} {'with' if content else 'without'} content")
            self.send_response(200)
        else:
            self.send_response(int(self.path[1:]))
            self.send_header("Location", "/target")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_QUERY = do_GET = answer

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
senders = {
    "requests": lambda url: requests.request("QUERY", url, data="{}"),
    "httpx": lambda url: httpx.request("QUERY", url, content="{}", follow_redirects=True),
    "curl": lambda url: subprocess.run(["curl", "-sS", "-L", "-X", "QUERY", "-d", "{}", url], check=True),
}
for name, send in senders.items():
    for status in (301, 302, 303, 307, 308):
        send(f"http://127.0.0.1:{server.server_port}/{status}")
        print(f"{name}, {status}: {arrived.pop()}", flush=True)
server.shutdown()
PY
PYTHONPATH=packages python3 look.py >seen
cat seen
cat >expected <<'TEXT'
requests, 301: QUERY without content
requests, 302: GET without content
requests, 303: GET without content
requests, 307: QUERY with content
requests, 308: QUERY with content
httpx, 301: QUERY with content
httpx, 302: GET without content
httpx, 303: GET without content
httpx, 307: QUERY with content
httpx, 308: QUERY with content
curl, 301: QUERY without content
curl, 302: QUERY without content
curl, 303: QUERY without content
curl, 307: QUERY with content
curl, 308: QUERY with content
TEXT
diff expected seen
