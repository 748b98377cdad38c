"""HTTP clients of Python, one by its name and with its defaults (plain), its settings (set) or its cache (cache).

A request a line in, its response a line out (line-exchange.ts has the form).
"""

import asyncio
import base64
import sys

library, mode = sys.argv[1:3]
EVERY = ["GET", "QUERY"]


def read_lines():
    for line in sys.stdin:
        method, url, content, *fields = line.rstrip("\n").split("\t")
        headers = dict(field.split(": ", 1) for field in fields)
        yield method, url, base64.b64decode(content) or None, headers


def write(status, body, headers):
    fields = [f"{name}: {value}" for name, value in headers]
    print("\t".join([str(status), base64.b64encode(body).decode(), *fields]), flush=True)


def write_error(error):
    words = " ".join(str(error).split()) or type(error).__name__
    print(f"error\t{words}", flush=True)


def is_stream(headers):
    return headers.get("Accept") == "text/event-stream"


def first_event(chunks):
    body = b""
    for chunk in chunks:
        body += chunk
        if b"\ndata:" in body:
            break
    return body


def run_requests():
    import requests

    if mode == "cache":
        from requests_cache import CachedSession

        session = CachedSession(backend="memory", allowable_methods=EVERY, cache_control=True)
    else:
        session = requests.Session()
    if mode == "set":
        from urllib3.util import Retry

        retry = Retry(total=2, allowed_methods=EVERY, status_forcelist=[503])
        session.mount("http://", requests.adapters.HTTPAdapter(max_retries=retry))
    for method, url, content, headers in read_lines():
        try:
            answer = session.request(method, url, data=content, headers=headers, stream=is_stream(headers))
            body = first_event(answer.iter_content(None)) if is_stream(headers) else answer.content
            write(answer.status_code, body, answer.headers.items())
            answer.close()
        except requests.RequestException as error:
            write_error(error)


def run_httpx():
    import httpx

    if mode == "cache":
        from hishel import SqliteStorage
        from hishel.httpx import CacheClient

        client = CacheClient(storage=SqliteStorage(database_path=":memory:"), rfc={"supported_methods": EVERY})
    elif mode == "set":
        from httpx_retries import Retry, RetryTransport

        retry = Retry(total=2, allowed_methods=EVERY)
        client = httpx.Client(follow_redirects=True, transport=RetryTransport(retry=retry))
    else:
        client = httpx.Client()
    for method, url, content, headers in read_lines():
        try:
            with client.stream(method, url, content=content, headers=headers) as answer:
                body = first_event(answer.iter_bytes()) if is_stream(headers) else answer.read()
                write(answer.status_code, body, answer.headers.items())
        except httpx.HTTPError as error:
            write_error(error)


async def run_aiohttp():
    import aiohttp

    session = aiohttp.ClientSession()
    client = session
    if mode == "set":
        from aiohttp_retry import ExponentialRetry, RetryClient

        options = ExponentialRetry(attempts=3, methods=set(EVERY), statuses={503})
        client = RetryClient(client_session=session, retry_options=options)
    for method, url, content, headers in read_lines():
        try:
            async with client.request(method, url, data=content, headers=headers) as answer:
                if is_stream(headers):
                    body = b""
                    while b"\ndata:" not in body:
                        body += await answer.content.readany()
                else:
                    body = await answer.read()
                write(answer.status, body, answer.headers.items())
        except aiohttp.ClientError as error:
            write_error(error)
    await session.close()


if library == "requests":
    run_requests()
elif library == "httpx":
    run_httpx()
else:
    asyncio.run(run_aiohttp())
