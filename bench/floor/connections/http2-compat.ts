/**
 * Second floor of requests over HTTP/2: the API of `node:http2` that looks like `node:http`, which most programs use.
 *
 * Usage: node bench/floor/connections/http2-compat.ts DATABASE CONSTANT-ANSWER
 */
import { createServer } from 'node:http2';
import { announce } from '../announce.ts';
import { type ConstantAnswer, createFloorAnswers } from './http2-answers.ts';

const [file = 'floor.db', constant = '{}'] = process.argv.slice(2);
const answerTo = createFloorAnswers(file, JSON.parse(constant) as ConstantAnswer);

announce(
  createServer((request, response) => {
    const answer = answerTo(request.url);
    if (answer === undefined) {
      response.writeHead(404, { 'content-length': '0' });
      response.end();
      return;
    }
    const { fields, content } = answer;
    for (let at = 0; at < fields.length; at += 2) response.setHeader(fields[at] ?? '', fields[at + 1] ?? '');
    response.writeHead(200);
    response.end(content);
  }),
);
