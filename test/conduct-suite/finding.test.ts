/** What the suite takes for the collection that it judges: by a URL, a document or a file, over TLS and IPv6, and under a limit of requests. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import { connect, type Server } from 'node:net';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import { type ConductOptions, conductExits, runConduct } from '../../conduct/command.ts';
import { type Patience, waitsMax, withPatience } from '../../conduct/patience.ts';
import { cert, key } from '../accounts/mail/certificate.ts';
import { listen } from '../harness/listening.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';
import { cleanToken, createCleanServer } from './clean-server.ts';
import { plainNotes } from './plain-notes.ts';

const header = [`Authorization: Bearer ${cleanToken}`];

/** Runs the command. @returns its exit code and what it printed */
async function conduct(url: string, options: ConductOptions = {}) {
  const printed: string[] = [];
  const print = (line: string): void => void printed.push(line);
  const screen = { out: print, err: print, hasColor: false, confirm: undefined, progress: () => undefined };
  const code = await runConduct(url, { only: ['etag-form'], json: true, ...options }, screen);
  return { code, text: printed.join('\n') };
}

/** A file with a sample of a note. */
function targetFile(): string {
  const path = join(temporaryFolder(), 'target.json');
  writeFileSync(path, JSON.stringify({ sample: { title: 'note {random}', done: false } }));
  return path;
}

const document = {
  openapi: '3.1.0',
  paths: {
    '/notes': {
      get: {},
      post: {
        requestBody: {
          content: {
            'application/json': {
              schema: { type: 'object', required: ['title'], properties: { title: { type: 'string' } } },
            },
          },
        },
      },
    },
    '/notes/{id}': { get: {} },
  },
};

type Paths = Readonly<Record<string, (response: ServerResponse) => void>>;

const json =
  (value: unknown, status = 200) =>
  (response: ServerResponse): void =>
    void response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(value));

/** Notes at /notes, and these paths beside them; 404 elsewhere. */
function withPaths(paths: Paths): RequestListener {
  const notes = plainNotes();
  return (request, response) => {
    const path = request.url ?? '';
    if (path.startsWith('/notes')) return notes(request, response);
    return (paths[path] ?? json({ error: 'not found' }, 404))(response);
  };
}

async function serve(context: TestContext, paths: Paths): Promise<string> {
  return (await listen(createServer(withPaths(paths)), context)).url;
}

describe('the collection that is judged', () => {
  const described = { '/openapi.json': json(document) };

  it('is the one that the document of the server names', async (context) => {
    const { text, code } = await conduct(await serve(context, described));
    assert.equal(code, conductExits.holds, text);
    assert.match(text, /"subject": "http:\/\/127\.0\.0\.1:\d+\/notes"/);
  });

  it('has the sample of the document where the URL names it', async (context) => {
    const url = await serve(context, described);
    const { text } = await conduct(`${url}/notes`, { only: ['post-created'] });
    assert.match(text, /the 201 has no Location/);
  });

  const others: readonly (readonly [string, string, Paths[string], RegExp])[] = [
    ['is not there', '/nothing', json({}, 404), /^conduct: GET \/nothing is answered 404: give the URL of a/],
    ['has no list', '/health', json({ status: 'ok' }), /answered 200: its content is application\/json, and/],
    [
      'is a page',
      '/about',
      (response) => response.writeHead(200, { 'Content-Type': 'text/html' }).end('<p>'),
      /^conduct: GET \/about is answered 200: its content is text\/html, and no list of documents: give the/,
    ],
  ];
  for (const [title, path, answer, message] of others)
    it(`is never another than the URL names, though that ${title}`, async (context) => {
      const { code, text } = await conduct(
        `${await serve(context, { ...described, [path]: answer })}${path}`,
      );
      assert.equal(code, conductExits.mistake);
      assert.match(text, message);
    });

  it('may be a list that no document describes, which is read alone', async (context) => {
    const url = await serve(context, { ...described, '/tags': json({ total: 0, entries: [] }) });
    const { code, text } = await conduct(`${url}/tags`, { only: ['post-created'] });
    assert.equal(code, conductExits.holds, text);
    assert.match(text, /the target has no sample document to create/);
  });

  it('is that of the URL where a file has its sample, whatever the document names', async (context) => {
    const url = await serve(context, { ...described, '/health': json({ status: 'ok' }) });
    const { text } = await conduct(`${url}/health`, { target: targetFile() });
    assert.match(text, /"subject": "http:\/\/127\.0\.0\.1:\d+\/health"/);
  });

  for (const status of [500, 503])
    it(`is not missed where the document is answered ${status}`, async (context) => {
      const url = await serve(context, { '/openapi.json': json({}, status) });
      const { code, text } = await conduct(url);
      assert.equal(code, conductExits.mistake);
      assert.match(
        text,
        new RegExp(`^conduct: GET /openapi\\.json is answered ${status}, so an OpenAPI document may`),
      );
    });

  it('is not missed where the document is answered 429 at first', async (context) => {
    let count = 0;
    const limited = (response: ServerResponse): void => {
      count += 1;
      if (count > 1) json(document)(response);
      else response.writeHead(429, { 'Retry-After': '0' }).end();
    };
    const { code, text } = await conduct(await serve(context, { '/openapi.json': limited }));
    assert.equal(code, conductExits.holds, text);
    assert.equal(count, 2);
  });
});

describe('a server that limits requests', () => {
  const refuse: RequestListener = (_request, response) =>
    response.writeHead(429, { 'Retry-After': '0' }).end();

  it('ends the run, though it answers nothing but 429', async (context) => {
    let count = 0;
    const { url } = await listen(
      createServer((request, response) => {
        count += 1;
        refuse(request, response);
      }),
      context,
    );
    const { code, text } = await conduct(`${url}/notes`);
    assert.equal(code, conductExits.mistake);
    assert.equal(
      text,
      [
        `conduct: GET /notes is answered 429, ${waitsMax} times after the wait that it asks for: raise the limit of the server`,
        'for the run, or judge some clauses with --only',
      ].join(' '),
    );
    assert.equal(count, 1 + waitsMax);
  });

  it('ends the run in its midst, which names what it leaves', async (context) => {
    const notes = plainNotes();
    let isLimited = false;
    const { url } = await listen(
      createServer((request, response) => {
        isLimited ||= request.method === 'PROPFIND';
        (isLimited ? refuse : notes)(request, response);
      }),
      context,
    );
    const { code, text } = await conduct(`${url}/notes`, {
      target: targetFile(),
      only: ['method-not-allowed', 'etag-form'],
    });
    assert.equal(code, conductExits.mistake);
    assert.match(
      text,
      /^conduct: PROPFIND \/notes is answered 429, .+; the run leaves \/notes\/1, \/notes\/2$/,
    );
  });

  const cases = [
    ['has just what it asks for', 1000, 0],
    ['has less than it asks for', 999, undefined],
  ] as const;
  for (const [title, leftMs, left] of cases)
    it(`is waited for where the run ${title}`, async () => {
      const patience: Patience = { leftMs };
      const answer = (status: number) =>
        ({ status, fields: [['Retry-After', '1']] }) as unknown as Awaited<ReturnType<typeof withPatience>>;
      const answers = [answer(429), answer(200)];
      const waiting = withPatience(patience, 'GET /', async () => answers.shift() ?? answer(500));
      if (left === undefined)
        await assert.rejects(waiting, /asks for 1 s, of 0 s that the run may still wait/);
      else assert.deepEqual([await waiting, patience], [answer(200), { leftMs: left }]);
    });
});

describe('the address of a server', () => {
  it('may be one of IPv6', async (context) => {
    const { port } = await listen(createCleanServer(), context, '::1');
    const { code, text } = await conduct(`http://[::1]:${port}/notes`, {
      ...{ header, target: targetFile() },
      only: ['methods', 'framing', 'http2'],
    });
    const { summary, subject } = JSON.parse(text);
    assert.equal(subject, `http://[::1]:${port}/notes`);
    assert.equal(code, conductExits.holds, text);
    assert.ok(summary.holds > 30, text);
  });

  it('may be one of TLS, whose certificate is verified unless --insecure is given', async (context) => {
    const { port } = await listen(overTls(createCleanServer()), context);
    const url = `https://127.0.0.1:${port}/notes`;
    const verified = await conduct(url, { header });
    assert.equal(verified.code, conductExits.mistake);
    assert.match(verified.text, /^conduct: no connection to 127\.0\.0\.1:\d+: .*certificate/);
    const { code, text } = await conduct(url, {
      ...{ header, target: targetFile(), insecure: true },
      only: ['methods', 'framing'],
    });
    assert.equal(code, conductExits.holds, text);
    assert.ok(JSON.parse(text).summary.holds > 30, text);
  });
});

/** A server of TLS before one that listens on a port of its own. */
function overTls(inner: Server): Server {
  inner.listen(0, '127.0.0.1');
  const server = createTlsServer({ cert, key }, (socket) => {
    const address = inner.address();
    if (address === null || typeof address === 'string') return socket.destroy();
    const upstream = connect(address.port, '127.0.0.1');
    socket.pipe(upstream).pipe(socket);
    upstream.on('error', () => socket.destroy());
    socket.on('error', () => upstream.destroy());
    return undefined;
  });
  server.on('close', () => inner.close());
  return server;
}
