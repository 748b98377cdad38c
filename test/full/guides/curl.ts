/**
 * As much of curl as the documentation uses, so that its examples are tested on machines without curl too. Prints what
 * curl would; refuses every option that it does not know, and brackets in a URL, which curl takes for a range.
 *
 * Usage: node test/full/guides/curl.ts [-isSNIg] [-X METHOD] [-H FIELD] [-d DATA] [-F NAME=VALUE | NAME=@FILE;type=TYPE] [-o FILE] [-m SECONDS] URL
 */
import { createWriteStream, readFileSync } from 'node:fs';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { basename } from 'node:path';
import type { Writable } from 'node:stream';

type Options = {
  method: string | undefined;
  url: string | undefined;
  target: string | undefined;
  readonly fields: string[];
  readonly data: string[];
  readonly form: string[];
  output: string | undefined;
  maxSeconds: number | undefined;
  include: boolean;
  head: boolean;
  glob: boolean;
};

const boundary = '------------------------d74496d66958873e';

const options = readOptions(process.argv.slice(2));
if (options.url === undefined) fail(2, 'no URL specified');
else if (options.glob && /[[\]{}]/.test(options.url)) fail(3, 'bad range in URL');
else send(options, new URL(options.url));

function readOptions(argv: readonly string[]): Options {
  const read: Options = {
    method: undefined,
    url: undefined,
    target: undefined,
    fields: [],
    data: [],
    form: [],
    output: undefined,
    maxSeconds: undefined,
    include: false,
    head: false,
    glob: true,
  };
  const left = [...argv];
  for (let word = left.shift(); word !== undefined; word = left.shift()) {
    if (word.startsWith('--')) readLong(word, read, left);
    else if (word.startsWith('-')) for (const letter of word.slice(1)) readShort(letter, read, left);
    else read.url = word;
  }
  return read;
}

function readLong(word: string, read: Options, left: string[]): void {
  if (word === '--request-target') read.target = left.shift();
  else if (word === '--max-time') read.maxSeconds = Number(left.shift());
  else fail(2, `option ${word}: is unknown`);
}

function readShort(letter: string, read: Options, left: string[]): void {
  const next = () => left.shift() ?? fail(2, `option -${letter}: requires parameter`);
  if (letter === 'i') read.include = true;
  else if (letter === 'I') read.head = true;
  else if (letter === 'g') read.glob = false;
  else if (letter === 'X') read.method = next();
  else if (letter === 'H') read.fields.push(next());
  else if (letter === 'd') read.data.push(next());
  else if (letter === 'F') read.form.push(next());
  else if (letter === 'o') read.output = next();
  else if (letter === 'm') read.maxSeconds = Number(next());
  else if (letter !== 's' && letter !== 'S' && letter !== 'N') fail(2, `option -${letter}: is unknown`);
}

function send(given: Options, url: URL): void {
  const content = contentOf(given);
  const method = given.method ?? (given.head ? 'HEAD' : content === undefined ? 'GET' : 'POST');
  const headers: Record<string, string> = { Host: url.host, Accept: '*/*' };
  if (content !== undefined) {
    headers['Content-Type'] =
      given.form.length > 0
        ? `multipart/form-data; boundary=${boundary}`
        : 'application/x-www-form-urlencoded';
    headers['Content-Length'] = String(Buffer.byteLength(content));
  }
  for (const field of given.fields) setField(headers, field);
  const path = given.target ?? `${url.pathname}${url.search}`;
  const request = httpRequest({ host: url.hostname, port: url.port, method, path, headers, agent: false });
  if (given.maxSeconds !== undefined) {
    // As curl does: what came by then is printed, and the exit code tells.
    setTimeout(() => process.exit(28), given.maxSeconds * 1000);
  }
  request.on('error', (error) => fail(7, error.message));
  request.on('response', (response) => {
    const into = given.output === undefined ? process.stdout : createWriteStream(given.output);
    print(response, given, into);
    response.on('end', () => (given.maxSeconds === undefined ? undefined : process.exit(0)));
  });
  request.end(content);
}

function print(response: IncomingMessage, given: Options, into: Writable): void {
  if (given.include || given.head) {
    into.write(`HTTP/${response.httpVersion} ${response.statusCode} ${response.statusMessage}\r\n`);
    for (let at = 0; at < response.rawHeaders.length; at += 2) {
      into.write(`${response.rawHeaders[at]}: ${response.rawHeaders[at + 1]}\r\n`);
    }
    into.write('\r\n');
  }
  response.pipe(into, { end: given.output !== undefined });
}

function contentOf({ data, form }: Options): string | undefined {
  if (form.length > 0) return multipart(form);
  return data.length > 0 ? data.join('&') : undefined;
}

function multipart(parts: readonly string[]): string {
  const written = parts.map((part) => {
    const equals = part.indexOf('=');
    const name = part.slice(0, equals);
    const value = part.slice(equals + 1);
    const head = `--${boundary}\r\nContent-Disposition: form-data; name="${name}"`;
    if (!value.startsWith('@')) return `${head}\r\n\r\n${value}\r\n`;
    const [path = '', type = 'type=application/octet-stream'] = value.slice(1).split(';');
    const file = `; filename="${basename(path)}"\r\nContent-Type: ${type.replace('type=', '')}`;
    return `${head}${file}\r\n\r\n${readFileSync(path, 'utf8')}\r\n`;
  });
  return `${written.join('')}--${boundary}--\r\n`;
}

/** `Name: value` sets, `Name:` removes. */
function setField(headers: Record<string, string>, field: string): void {
  const colon = field.indexOf(':');
  const name = field.slice(0, colon);
  const value = field.slice(colon + 1).trim();
  for (const known of Object.keys(headers)) {
    if (known.toLowerCase() === name.toLowerCase()) delete headers[known];
  }
  if (value !== '') headers[name] = value;
}

function fail(code: number, message: string): never {
  process.stderr.write(`curl: (${code}) ${message}\n`);
  process.exit(code);
}
