/**
 * HTTP clients of Node, one by its name and with its defaults (`plain`), its settings (`set`) or its cache (`cache`): a request a line in, its
 * response a line out (line-exchange.ts has the form).
 */
import { createInterface } from 'node:readline';

const [library, mode] = process.argv.slice(2);

const every = ['GET', 'QUERY'];

/** They are packages of the folder that this file is copied to, not of this repository. */
const load = (name) => import(name);

/** Each takes a URL and what fetch takes, and returns the status, the fields as pairs, and the content as octets or as a stream. */
const clients = {
  fetch: async () => async (url, init) => ofFetch(await fetch(url, init)),
  undici: async () => {
    const { Agent, interceptors, request } = await load('undici');
    const { cache, decompress, redirect, retry } = interceptors;
    const chosen = {
      plain: () => [],
      set: () => [redirect({ maxRedirections: 5 }), retry({ methods: every }), decompress()],
      cache: () => [cache({ methods: every })],
    };
    const dispatcher = new Agent().compose(chosen[mode]());
    return async (url, init) => {
      const { statusCode, headers, body } = await request(url, { ...init, dispatcher });
      return { status: statusCode, headers: Object.entries(headers), body };
    };
  },
  axios: async () => {
    const { default: axios } = await load('axios');
    const client = axios.create({ validateStatus: () => true, responseType: 'stream' });
    if (mode === 'set') {
      const { default: axiosRetry } = await load('axios-retry');
      const isPassing = ({ response }) => response === undefined || response.status === 503;
      client.defaults.validateStatus = (status) => status !== 503;
      axiosRetry(client, { retries: 2, retryCondition: isPassing });
    }
    if (mode === 'cache') {
      const { setupCache } = await load('axios-cache-interceptor');
      client.defaults.responseType = 'text';
      setupCache(client, { methods: ['get', 'query'] });
    }
    return async (url, { body, ...init }) => {
      const answer = await client.request({ url, ...init, data: body });
      return { status: answer.status, headers: Object.entries(answer.headers), body: answer.data };
    };
  },
  got: async () => {
    const { default: got } = await load('got');
    const cache = mode === 'cache' ? new Map() : false;
    const options = { throwHttpErrors: false, responseType: 'buffer', cache };
    return async (url, init) => {
      if (isStream(init)) {
        const body = got.stream(url, { ...options, ...init });
        const answer = await new Promise((resolve, reject) =>
          body.on('response', resolve).on('error', reject),
        );
        return { status: answer.statusCode, headers: Object.entries(answer.headers), body };
      }
      const answer = await got(url, { ...options, ...init });
      return { status: answer.statusCode, headers: Object.entries(answer.headers), body: [answer.body] };
    };
  },
  ky: async () => {
    const { default: ky } = await load('ky');
    // It retries after statuses alone for which it may throw, and has read the content of the response that it throws.
    const throwHttpErrors = (status) => status === 503;
    return async (url, init) => ofFetch(await ky(url, { throwHttpErrors, ...init }));
  },
  'make-fetch-happen': async () => {
    const { default: fetch } = await load('make-fetch-happen');
    const options = mode === 'set' ? { retry: { retries: 2 } } : {};
    return async (url, init) => {
      const answer = await fetch(url, { ...options, ...init });
      return { status: answer.status, headers: [...answer.headers], body: answer.body };
    };
  },
};

const ofFetch = ({ status, headers, body }) => ({ status, headers: [...headers], body: body ?? [] });
const isStream = ({ headers }) => headers.Accept === 'text/event-stream';

/** The content, or that of an event stream as far as its first event. */
async function contentOf(init, body) {
  if (typeof body === 'string') return Buffer.from(body);
  const chunks = [];
  for await (const chunk of body) {
    chunks.push(Buffer.from(chunk));
    if (isStream(init) && Buffer.concat(chunks).includes('\ndata:')) break;
  }
  return Buffer.concat(chunks);
}

// A setting that the library refuses is an error of each request.
const send = await clients[library]().catch((error) => () => Promise.reject(error));
for await (const line of createInterface({ input: process.stdin })) {
  const [method, url, content, ...fields] = line.split('\t');
  const headers = Object.fromEntries(fields.map((field) => field.split(/: (.*)/s, 2)));
  const init = { method, headers, ...(content === '' ? {} : { body: Buffer.from(content, 'base64') }) };
  try {
    const answer = await send(url, init);
    const octets = await contentOf(init, answer.body);
    const out = answer.headers.map(([name, value]) => `${name}: ${value}`);
    console.log([answer.status, octets.toString('base64'), ...out].join('\t'));
  } catch (error) {
    console.log(`error\t${(error.cause?.message ?? error.message).replace(/\s+/g, ' ')}`);
  }
}
