/**
 * Floor of requests over HTTP/2: the stream API of `node:http2`, which Comity uses as well.
 *
 * Usage: node bench/floor/connections/http2-stream.ts DATABASE CONSTANT-ANSWER
 */
import { createServer, type ServerHttp2Stream } from 'node:http2';
import { announce } from '../announce.ts';
import { type ConstantAnswer, createFloorAnswers } from './http2-answers.ts';

const [file = 'floor.db', constant = '{}'] = process.argv.slice(2);
const answerTo = createFloorAnswers(file, JSON.parse(constant) as ConstantAnswer);
const notFound = [':status', '404', 'content-length', '0'];

const server = createServer();
server.on('stream', (stream: ServerHttp2Stream, headers) => {
  const answer = answerTo(headers[':path'] ?? '');
  if (answer === undefined) {
    stream.respond(notFound, { endStream: true });
    return;
  }
  stream.respond([':status', '200', ...answer.fields]);
  stream.end(answer.content);
});
announce(server);
