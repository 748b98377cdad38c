/**
 * The smallest server that every clause of the suite holds of: notes in memory, closed to strangers, over HTTP/1.1 and HTTP/2 in clear on one
 * port, with a WebSocket handshake and tunnels. It shows that the suite asks for nothing that only Comity does.
 */
import { createHash, randomUUID } from 'node:crypto';
import * as http from 'node:http';
import { createServer as createHttp2Server } from 'node:http2';
import { connect, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';

export const cleanToken = 'clean-token-123';
export const cleanOrigin = 'https://app.example';
export const tunnelCredentials = 'Basic Y2xlYW46Y2xlYW4=';

type Fields = Readonly<Record<string, string>>;
type Document = Readonly<Record<string, unknown>>;
export type Answer = { readonly status: number; readonly fields?: Fields; readonly json?: unknown };
export type Asked = {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly fields: http.IncomingHttpHeaders;
  readonly content: Buffer;
};
export type Notes = (asked: Asked) => Answer;

const contentBytesMax = 65_536;
const [json, mergePatch, jsonPatch] = [
  'application/json',
  'application/merge-patch+json',
  'application/json-patch+json',
] as const;
const typesOf: Readonly<Record<string, readonly string[]>> = {
  ...{ POST: [json], PUT: [json], QUERY: [json], PATCH: [mergePatch, jsonPatch] },
};
const accepts = { 'Accept-Patch': `${mergePatch}, ${jsonPatch}`, 'Accept-Query': `"${json}"` };
const methods = ['GET', 'HEAD', 'OPTIONS', 'POST', 'QUERY', 'PUT', 'PATCH', 'DELETE'];
const methodsOfList = methods.slice(0, 5);
const methodsOfMember = methods.filter((each) => each !== 'POST' && each !== 'QUERY');
const always = {
  'Cache-Control': 'private, no-cache',
  Vary: 'Accept-Encoding, Origin, X-API-Key',
  RateLimit: '"all";r=1000;t=60',
  'RateLimit-Policy': '"all";q=1000;w=60',
};
const corsFields = {
  'Access-Control-Allow-Origin': cleanOrigin,
  'Access-Control-Allow-Methods': methods.join(', '),
  'Access-Control-Allow-Headers': 'Authorization, Content-Type',
  'Access-Control-Expose-Headers': 'ETag, Location',
  'Access-Control-Allow-Credentials': 'true',
};

/** Answers of the collection `/notes` and its members. */
function createNotes(): Notes {
  const notes = new Map<string, Answer>();
  const answered = new Map<string, { readonly content: string; readonly answer: Answer }>();

  const keep = (id: string, document: Document | undefined): Answer => {
    if (typeof document?.title !== 'string') return problem(422);
    const fields = { ETag: `"${randomUUID()}"`, 'Last-Modified': new Date().toUTCString() };
    const note = { status: 200, fields, json: { ...document, id } };
    notes.set(id, note);
    return note;
  };
  const create = ({ fields, content }: Asked): Answer => {
    const key = String(fields['idempotency-key'] ?? '');
    const before = answered.get(key);
    if (before !== undefined) return before.content === String(content) ? before.answer : problem(422);
    const id = randomUUID();
    const note = keep(id, parsed(content) as Document);
    if (note.status !== 200) return note;
    const answer = { ...note, status: 201, fields: { ...note.fields, Location: `/notes/${id}` } };
    if (key !== '') answered.set(key, { content: String(content), answer });
    return answer;
  };
  /** Every query asks for all notes; its Location repeats it. */
  const list = (asked: Asked): Answer => {
    const isQuery = asked.method === 'QUERY';
    const key = isQuery ? digest(asked.content) : asked.query;
    const [items, at] = [[...notes.values()].map((note) => note.json), `/notes?${key}`];
    const links = isQuery && { Location: at, 'Content-Location': at };
    const fields = { ETag: `"${digest(JSON.stringify([items, key]))}"`, ...links };
    return conditional(asked, { status: 200, fields, json: { items } });
  };
  const member = (asked: Asked, id: string): Answer => {
    const { method, fields, content } = asked;
    const note = notes.get(id);
    if (note === undefined) return problem(fields['if-match'] === undefined ? 404 : 412);
    const answer = conditional(asked, note);
    if (answer !== note || method === 'GET' || method === 'HEAD') return answer;
    if (method === 'DELETE') return notes.delete(id) ? { status: 204 } : problem(404);
    const [before, value] = [note.json as Document, parsed(content)];
    if (fields['content-type'] === jsonPatch) return keep(id, patched(before, value));
    return keep(id, { ...(method === 'PATCH' && before), ...(value as Document) });
  };

  return (asked) => {
    const { method, path, fields } = asked;
    if (!methods.includes(method)) return problem(501);
    if (path === '*') return { status: 204, fields: { Allow: methods.join(', ') } };
    const found = /^\/notes(?:\/([^/]+))?$/.exec(path);
    if (found === null) return problem(404);
    const [, id] = found;
    if (/%(?![0-9a-f]{2})/i.test(path)) return problem(400);
    const allowed = id === undefined ? methodsOfList : methodsOfMember;
    const Allow = allowed.join(', ');
    if (method === 'OPTIONS') return { status: 204, fields: { Allow, ...accepts } };
    const token = /^bearer (.*)$/i.exec(fields.authorization ?? '')?.[1] ?? fields['x-api-key'];
    if (token !== cleanToken) return problem(401, { 'WWW-Authenticate': 'Bearer realm="notes"' });
    if (!allowed.includes(method)) return problem(405, { Allow });
    const refused = isAcceptable(fields.accept) ? refuseContent(asked) : problem(406);
    if (refused !== undefined) return refused;
    if (id !== undefined) return member(asked, id);
    return method === 'POST' ? create(asked) : list(asked);
  };
}

function problem(status: number, fields: Fields = {}): Answer {
  const content = { type: 'about:blank', title: http.STATUS_CODES[status], status };
  return { status, fields: { ...fields, 'Content-Type': 'application/problem+json' }, json: content };
}

function digest(value: Buffer | string): string {
  return createHash('sha1').update(value).digest('hex');
}

function parsed(content: Buffer): unknown {
  try {
    return JSON.parse(String(content));
  } catch {
    // Malformed content is refused by the caller.
    return undefined;
  }
}

/** The answer, or 412 or 304 in its place (RFC 9110 §13.2.2). */
function conditional({ method, fields }: Asked, answer: Answer): Answer {
  const { ETag: tag = '', 'Last-Modified': modified = '' } = answer.fields ?? {};
  const names = (value: string): readonly string[] => value.split(',').map((each) => each.trim());
  const isAfter = (value: string): boolean => Date.parse(modified) > Date.parse(value);
  const { 'if-match': match, 'if-none-match': none } = fields;
  const { 'if-unmodified-since': unmodified = '', 'if-modified-since': since = '' } = fields;
  if (match === undefined ? isAfter(unmodified) : match !== '*' && !names(match).includes(tag))
    return problem(412);
  const isRead = ['GET', 'HEAD', 'QUERY'].includes(method);
  const isSame =
    none !== undefined && names(none).some((each) => each === '*' || each.replace('W/', '') === tag);
  if (isSame && !isRead) return problem(412);
  const isOld = none === undefined && isRead && Date.parse(modified) <= Date.parse(since);
  return isSame || isOld ? { ...answer, status: 304, json: undefined } : answer;
}

function refuseContent({ method, fields, content }: Asked): Answer | undefined {
  const types = typesOf[method];
  if (types === undefined) return undefined;
  if (fields['content-encoding'] !== undefined) return problem(415, { 'Accept-Encoding': 'identity' });
  if (!types.includes(fields['content-type']?.split(';')[0] ?? '')) return problem(415, accepts);
  return fields['content-range'] !== undefined || parsed(content) === undefined ? problem(400) : undefined;
}

function isAcceptable(accept = '*/*'): boolean {
  const ranges = accept.split(',').map((each) => each.split(';')[0]?.trim() ?? '');
  const served = ['*/*', 'application/*', json, 'text/html'];
  return ranges.some((each) => served.includes(each) || !/^[\w*+.-]+\/[\w*+.-]+$/.test(each));
}

/** `test` and `replace` of members alone; everything else is refused. */
function patched(document: Document, operations: unknown): Document | undefined {
  if (!Array.isArray(operations)) return undefined;
  let current = document;
  for (const { op, path, value } of operations) {
    const name = String(path).slice(1);
    const isSame = JSON.stringify(current[name]) === JSON.stringify(value);
    if (!(name in current) || !(op === 'replace' || (op === 'test' && isSame))) return undefined;
    if (op === 'replace') current = { ...current, [name]: value };
  }
  return current;
}

/** @param overHttp2 changes how requests of HTTP/2 are answered */
export function createCleanServer(overHttp2: (notes: Notes) => Notes = (notes) => notes): Server {
  const notes = createNotes();
  // A request whose connection ends within its content has no answer.
  const handleWith = (answerOf: Notes) => (request: unknown, response: unknown) =>
    void serve(answerOf, request as http.IncomingMessage, response as http.ServerResponse).catch(
      () => undefined,
    );
  // Node leaves an Upgrade that is not taken to the handler.
  const shouldUpgradeCallback = ({ headers }: http.IncomingMessage) =>
    /^websocket$/i.test(headers.upgrade ?? '');
  const old = http.createServer({ shouldUpgradeCallback }, handleWith(notes));
  const http2 = createHttp2Server(handleWith(overHttp2(notes)));
  old.on('upgrade', (request, socket: Socket) => upgrade(request, socket));
  old.on('connect', (request, socket: Socket) => tunnel(request, socket));
  old.on('clientError', ({ code }: NodeJS.ErrnoException, socket: Socket) => {
    const statuses: Record<string, number> = { HPE_INVALID_METHOD: 501, HPE_HEADER_OVERFLOW: 431 };
    if (socket.writable) refuse(socket, statuses[code ?? ''] ?? 400);
  });
  return createTcpServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.once('readable', () => {
      const first: Buffer | null = socket.read();
      if (first === null) return;
      socket.unshift(first);
      (first.toString('latin1', 0, 4) === 'PRI ' ? http2 : old).emit('connection', socket);
    });
  });
}

async function serve(
  notes: Notes,
  request: http.IncomingMessage,
  response: http.ServerResponse,
): Promise<void> {
  const { method = '', url = '', headers, rawHeaders } = request;
  const hosts = rawHeaders.filter((name, index) => index % 2 === 0 && /^host$/i.test(name));
  const host = headers.host ?? String(headers[':authority'] ?? '');
  if (Number(headers['content-length'] ?? 0) > contentBytesMax) {
    // Content that is not read ends with the connection, after a moment in which the answer arrives.
    request.resume();
    write(problem(413, { Connection: 'close' }), request, response);
    return;
  }
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const { pathname = '', search = '' } = URL.parse(url, 'http://clean') ?? {};
  const path = url === '*' ? url : pathname;
  const asked = { method, path, query: search.slice(1), fields: headers, content: Buffer.concat(chunks) };
  const isMalformed = hosts.length > 1 || !/^[\w.:[\]-]+$/.test(host) || url.includes('#');
  write(isMalformed ? problem(400) : notes(asked), request, response);
}

function write(
  { status, fields, json: value }: Answer,
  request: http.IncomingMessage,
  response: http.ServerResponse,
): void {
  const { headers, method } = request;
  let [code, content] = [status, Buffer.from(value === undefined ? '' : JSON.stringify(value))];
  const cors = headers.origin === cleanOrigin && corsFields;
  const out: Record<string, string> = { 'Content-Type': json, ...always, ...fields, ...cors };
  const isRead = status === 200 && (method === 'GET' || method === 'HEAD');
  if (isRead && /\bgzip\b/.test(String(headers['accept-encoding']))) {
    content = gzipSync(content);
    Object.assign(out, { 'Content-Encoding': 'gzip', ETag: out.ETag?.replace(/"$/, '-gzip"') });
  }
  if (isRead) out['Accept-Ranges'] = 'bytes';
  const range = isRead && method === 'GET' ? rangeOf(headers, out.ETag, content.length) : undefined;
  if (range !== undefined) {
    const [first, last] = range;
    code = first > last ? 416 : 206;
    out['Content-Range'] = `bytes ${code === 416 ? '*' : `${first}-${last}`}/${content.length}`;
    content = content.subarray(first, last + 1);
  }
  if (status === 204) delete out['Content-Type'];
  else if (status !== 304) out['Content-Length'] = String(content.length);
  response.writeHead(code, out);
  response.end(method === 'HEAD' ? '' : content);
}

/** One range of octets, whose first is after the last where it lies beyond the end; several are answered with the whole. */
function rangeOf(fields: http.IncomingHttpHeaders, tag: string | undefined, length: number) {
  const [, first = '', last = ''] = /^bytes=(\d*)-(\d*)$/.exec(fields.range ?? '') ?? [];
  const isOther = fields['if-range'] !== undefined && fields['if-range'] !== tag;
  if (isOther || (first === '' && last === '')) return undefined;
  if (first === '') return [Math.max(length - Number(last), 0), length - 1] as const;
  return [Number(first), last === '' ? length - 1 : Math.min(Number(last), length - 1)] as const;
}

function refuse(socket: Socket, status: number, fields = ''): void {
  const line = `HTTP/1.1 ${status} ${http.STATUS_CODES[status]}`;
  socket.end(`${line}\r\n${fields}Connection: close\r\nContent-Length: 0\r\n\r\n`);
}

function upgrade({ headers, url, httpVersion }: http.IncomingMessage, socket: Socket): void {
  const key = headers['sec-websocket-key'] ?? '';
  const isSound = url === '/socket' && httpVersion === '1.1' && Buffer.from(key, 'base64').length === 16;
  const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
  const lines = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade'];
  if (headers['sec-websocket-version'] !== '13') refuse(socket, 426, 'Sec-WebSocket-Version: 13\r\n');
  else if (!isSound) refuse(socket, 400);
  else socket.write(`${[...lines, `Sec-WebSocket-Accept: ${accept}`].join('\r\n')}\r\n\r\n`);
}

function tunnel({ headers, url = '' }: http.IncomingMessage, socket: Socket): void {
  const [, host, port] = /^([\w.-]+):(\d+)$/.exec(url) ?? [];
  const isKnown = headers['proxy-authorization'] === tunnelCredentials;
  if (host === undefined) refuse(socket, 400);
  else if (!isKnown) refuse(socket, 407, 'Proxy-Authenticate: Basic realm="clean"\r\n');
  else {
    const upstream = connect(Number(port), host, () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      socket.pipe(upstream).pipe(socket);
    });
    upstream.on('error', () => socket.destroy());
    socket.on('error', () => upstream.destroy());
  }
}
