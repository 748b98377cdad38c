/**
 * The bare `node:http` server that answers one constant: what the load generator must outrun, and what everything
 * else is made of.
 *
 * Usage: node bench/floor/constant.ts
 */
import { createServer } from 'node:http';
import { announce } from './announce.ts';

const body = '{"ok":true}';
const headers = ['Content-Type', 'application/json', 'Content-Length', String(body.length)];

announce(
  createServer({ keepAliveTimeout: 0, requestTimeout: 0, headersTimeout: 0 }, (_request, response) => {
    response.writeHead(200, headers);
    response.end(body, 'latin1');
  }),
);
