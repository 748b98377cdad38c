/**
 * Serves the notes of `clean-notes.ts` over HTTP/1.1 and HTTP/2 in clear on one port: framing, codings, ranges, pages of other origins, a
 * WebSocket handshake and tunnels.
 */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import {
  createServer as createHttp2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from 'node:http2';
import { connect, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { type Answer, type Asked, CleanNotes } from './clean-notes.ts';

export const cleanOrigin = 'https://app.example';
export const tunnelCredentials = 'Basic Y2xlYW46Y2xlYW4=';

const contentBytesMax = 65_536;
const http2Preface = 'PRI ';
const corsFields = {
  'Access-Control-Allow-Origin': cleanOrigin,
  'Access-Control-Allow-Methods': 'GET, HEAD, POST, PUT, PATCH, DELETE, QUERY',
  'Access-Control-Allow-Headers': 'Authorization, Content-Type',
  'Access-Control-Expose-Headers': 'ETag, Location',
  'Access-Control-Allow-Credentials': 'true',
};

export type Notes = (asked: Asked) => Answer;
type Request = IncomingMessage | Http2ServerRequest;
type Response = ServerResponse | Http2ServerResponse;

/**
 * @param overHttp2 changes how requests of HTTP/2 are answered
 * @returns a server that does not listen yet
 */
export function createCleanServer(overHttp2: (notes: Notes) => Notes = (notes) => notes): Server {
  const notes = new CleanNotes().answer;
  // A request whose connection ends within its content has no answer.
  const handleWith = (answerOf: Notes) => (request: Request, response: Response) =>
    void serve(answerOf, request, response as ServerResponse).catch(() => request.destroy());
  // Node leaves an Upgrade that is not taken to the handler.
  const shouldUpgradeCallback = ({ headers }: IncomingMessage): boolean =>
    headers.upgrade?.toLowerCase() === 'websocket';
  const old = createServer({ shouldUpgradeCallback }, handleWith(notes));
  const http2 = createHttp2Server(handleWith(overHttp2(notes)));
  old.on('upgrade', (request: IncomingMessage, socket: Socket) => upgrade(request, socket));
  old.on('connect', (request: IncomingMessage, socket: Socket) => tunnel(request, socket));
  old.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    const statuses: Record<string, string> = {
      HPE_INVALID_METHOD: '501 Not Implemented',
      HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
    };
    const status = statuses[error.code ?? ''] ?? '400 Bad Request';
    if (socket.writable) socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
  });
  return createTcpServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.once('readable', () => {
      const first: Buffer | null = socket.read();
      if (first === null) return;
      socket.unshift(first);
      (first.toString('latin1', 0, 4) === http2Preface ? http2 : old).emit('connection', socket);
    });
  });
}

async function serve(notes: Notes, request: Request, response: ServerResponse): Promise<void> {
  const url = URL.parse(request.url ?? '', 'http://clean');
  const hosts = request.rawHeaders.filter((name, index) => index % 2 === 0 && /^host$/i.test(name));
  const host = request.headers.host ?? (request.headers[':authority'] as string | undefined) ?? '';
  const isMalformed = hosts.length > 1 || !/^[\w.:[\]-]+$/.test(host) || (request.url ?? '').includes('#');
  const chunks: Buffer[] = [];
  let length = Number(request.headers['content-length'] ?? 0);
  if (length > contentBytesMax)
    return write({ status: 413, json: { title: 'too large' } }, request, response);
  for await (const chunk of request) {
    length += (chunk as Buffer).length;
    chunks.push(chunk as Buffer);
  }
  const asked: Asked = {
    method: request.method ?? '',
    path: request.url === '*' ? '*' : (url?.pathname ?? ''),
    query: url?.search.slice(1) ?? '',
    fields: request.headers,
    content: Buffer.concat(chunks),
  };
  write(isMalformed ? { status: 400, json: { title: 'malformed' } } : notes(asked), request, response);
}

function write({ status, fields = {}, json }: Answer, request: Request, response: ServerResponse): void {
  const { headers, method = '' } = request;
  let code = status;
  let content = json === undefined ? Buffer.alloc(0) : Buffer.from(JSON.stringify(json));
  const out: Record<string, string> = {
    'Content-Type': 'application/json',
    Vary: 'Accept-Encoding, Origin, X-API-Key',
    RateLimit: '"all";r=1000;t=60',
    'RateLimit-Policy': '"all";q=1000;w=60',
    ...fields,
    ...(headers.origin === cleanOrigin && corsFields),
  };
  const isRead = status === 200 && (method === 'GET' || method === 'HEAD');
  if (isRead && /\bgzip\b/.test(String(headers['accept-encoding'] ?? ''))) {
    content = gzipSync(content);
    Object.assign(out, { 'Content-Encoding': 'gzip', ETag: out.ETag?.replace(/"$/, '-gzip"') });
  }
  if (isRead) out['Accept-Ranges'] = 'bytes';
  const range = isRead && method === 'GET' ? rangeOf(headers, out.ETag, content.length) : undefined;
  if (range === 'none') {
    Object.assign(out, { 'Content-Range': `bytes */${content.length}` });
    code = 416;
    content = Buffer.alloc(0);
  } else if (range !== undefined) {
    code = 206;
    out['Content-Range'] = `bytes ${range[0]}-${range[1]}/${content.length}`;
    content = content.subarray(range[0], range[1] + 1);
  }
  if (status !== 204 && status !== 304) out['Content-Length'] = String(content.length);
  if (status === 204) delete out['Content-Type'];
  // Content that is not read ends with the connection, after a moment in which the answer arrives.
  if (status === 413) out.Connection = 'close';
  response.writeHead(code, out);
  if (status === 413) request.resume();
  response.end(method === 'HEAD' ? '' : content);
}

type Fields = Readonly<Record<string, unknown>>;

/** One range of octets, or `none` where it lies beyond the end; several are answered with the whole. */
function rangeOf(
  fields: Fields,
  tag: string | undefined,
  length: number,
): [number, number] | 'none' | undefined {
  const [, first = '', last = ''] = /^bytes=(\d*)-(\d*)$/.exec(String(fields.range ?? '')) ?? [];
  if (first === '' && last === '') return undefined;
  if (fields['if-range'] !== undefined && fields['if-range'] !== tag) return undefined;
  if (first === '') return [Math.max(length - Number(last), 0), length - 1];
  if (Number(first) >= length) return 'none';
  return [Number(first), last === '' ? length - 1 : Math.min(Number(last), length - 1)];
}

function upgrade(request: IncomingMessage, socket: Socket): void {
  const key = request.headers['sec-websocket-key'] ?? '';
  const isSocket = request.url === '/socket' && Buffer.from(key, 'base64').length === 16;
  const isOld = request.headers['sec-websocket-version'] !== '13';
  if (!isSocket || isOld || request.httpVersion === '1.0') {
    const fields = isOld ? 'Sec-WebSocket-Version: 13\r\n' : '';
    socket.end(
      `HTTP/1.1 ${isOld ? '426 Upgrade Required' : '400 Bad Request'}\r\n${fields}Connection: close\r\nContent-Length: 0\r\n\r\n`,
    );
    return;
  }
  const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
  const lines = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade'];
  socket.write(`${[...lines, `Sec-WebSocket-Accept: ${accept}`].join('\r\n')}\r\n\r\n`);
}

function tunnel(request: IncomingMessage, socket: Socket): void {
  const [, host, port] = /^([\w.-]+):(\d+)$/.exec(request.url ?? '') ?? [];
  const refuse = (status: string, fields = ''): void =>
    void socket.end(`HTTP/1.1 ${status}\r\n${fields}Connection: close\r\nContent-Length: 0\r\n\r\n`);
  if (host === undefined) {
    refuse('400 Bad Request');
    return;
  }
  if (request.headers['proxy-authorization'] !== tunnelCredentials) {
    refuse('407 Proxy Authentication Required', 'Proxy-Authenticate: Basic realm="clean"\r\n');
    return;
  }
  const upstream = connect(Number(port), host, () => {
    socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
    socket.pipe(upstream).pipe(socket);
  });
  upstream.on('error', () => socket.destroy());
  socket.on('error', () => upstream.destroy());
}
