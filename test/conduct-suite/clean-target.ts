/** The server of `clean-server.ts`, listening until a test ends, as a target of the suite. */
import { createServer } from 'node:net';
import { patienceMsMax } from '../../conduct/patience.ts';
import type { Target } from '../../conduct/target.ts';
import { type Ending, listen } from '../harness/listening.ts';
import { cleanOrigin, cleanToken, createCleanServer, type Notes, tunnelCredentials } from './clean-server.ts';

type CleanOptions = {
  readonly credentials?: 'Authorization' | 'X-API-Key';
  /** Stands between the suite and the server. @returns the port that the suite connects to */
  readonly through?: (port: number) => Promise<number>;
  readonly overHttp2?: (notes: Notes) => Notes;
};

export async function cleanTarget(
  context: Ending,
  { credentials = 'Authorization', through = async (port) => port, overHttp2 }: CleanOptions = {},
): Promise<Target> {
  const { port: own } = await listen(createCleanServer(overHttp2), context);
  const { port: destination } = await listen(createServer(), context);
  const port = await through(own);
  const headers =
    credentials === 'Authorization' ? { Authorization: `Bearer ${cleanToken}` } : { 'X-API-Key': cleanToken };
  return {
    address: { scheme: 'http', host: '127.0.0.1', port, isInsecure: false },
    ...{ url: `http://127.0.0.1:${port}`, host: `127.0.0.1:${port}`, headers, idMember: 'id' },
    patience: { leftMs: patienceMsMax },
    ...{
      collection: '/notes',
      sample: { title: 'note {random}', done: false },
      change: { title: 'other {random}' },
    },
    ...{ origin: cleanOrigin, websocket: '/socket' },
    tunnel: {
      destination: `127.0.0.1:${destination}`,
      headers: { 'Proxy-Authorization': tunnelCredentials },
    },
  };
}
