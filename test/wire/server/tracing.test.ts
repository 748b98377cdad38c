/** Traces over OTLP, as a receiver in this process decodes them: one trace from the request to its webhook and its subscriber. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { openTracing, readTraceTarget, type TraceTarget } from '../../../src/observe/tracing.ts';
import { runCommand, spawnCommand } from '../../harness/command-line.ts';
import { type DeliveryReceiver, startDeliveryReceiver } from '../../harness/delivery-receiver.ts';
import { type Listening, listen } from '../../harness/listening.ts';
import { type RunningServer, startServer } from '../../harness/running-server.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';
import { until } from '../../harness/until.ts';
import { localEgress } from '../webhooks/program-with-receiver.ts';

type Attribute = {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: number | string };
};
type Span = {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly attributes: readonly Attribute[];
  readonly status: { readonly code?: number };
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
};
type Export = {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly Span[] }[];
  }[];
};

const textAt = (attributes: readonly Attribute[], key: string): string | undefined => {
  const value = attributes.find((each) => each.key === key)?.value;
  return value === undefined ? undefined : String(value.stringValue ?? value.intValue);
};

const config = 'test/wire/fixtures/traced.config.ts';
const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const parentId = '00f067aa0ba902b7';
const sampled = { traceparent: `00-${traceId}-${parentId}-01` };

describe('traces', () => {
  const exports: Export[] = [];
  const requests: { readonly url: string | undefined; readonly key: string | undefined }[] = [];
  let receiver: DeliveryReceiver;
  let collector: Listening;
  let server: RunningServer;

  const spans = (): readonly Span[] =>
    exports.flatMap(({ resourceSpans }) =>
      resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap((scope) => scope.spans)),
    );
  const named = (name: string): Span => {
    const found = spans().filter((span) => span.name === name && span.traceId === traceId);
    assert.equal(found.length, 1, `${name}: ${JSON.stringify(spans().map((span) => span.name))}`);
    return found[0] as Span;
  };

  before(async () => {
    const otlp = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const key = request.headers['x-collector-key'];
        requests.push({ url: request.url, key: typeof key === 'string' ? key : undefined });
        exports.push(JSON.parse(Buffer.concat(chunks).toString()));
        response.setHeader('Content-Type', 'application/json').end('{}');
      });
    });
    collector = await listen(otlp);
    receiver = await startDeliveryReceiver();
    server = await startServer({
      config,
      env: {
        ...localEgress,
        COMITY_LOG_LEVEL: 'debug',
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_EXPORTER_OTLP_HEADERS: 'x-collector-key=a%20key',
        OTEL_SERVICE_NAME: 'desk',
        OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
      },
    });
    const json = { url: `${receiver.url}/hook`, events: ['notes.*'] };
    assert.equal((await server.send('POST', '/api/v1/endpoints', { json })).status, 201);
    const note = { json: { text: 'one' }, headers: sampled };
    assert.equal((await server.send('POST', '/api/v1/notes', note)).status, 201);
    await until(() => receiver.received.length > 0);
    await until(async () => (await server.list('/api/v1/copies')).length > 0);
    await server.send('POST', '/api/v1/notes', {
      json: { text: 'fail' },
      headers: { traceparent: 'garbage' },
    });
    await server.send('GET', '/api/v1/notes', {
      headers: { traceparent: `00-${'a'.repeat(32)}-${parentId}-00` },
    });
    // The end sends what waits.
    await server.stop();
  });

  after(() => collector.close());

  test('come to the path of spans, with the header fields and the resource of the environment', () => {
    assert.deepEqual(requests[0], { url: '/v1/traces', key: 'a key' });
    const { attributes } = exports[0]?.resourceSpans[0]?.resource ?? { attributes: [] };
    assert.equal(textAt(attributes, 'service.name'), 'desk');
    assert.equal(textAt(attributes, 'deployment.environment.name'), 'test');
    assert.notEqual(textAt(attributes, 'service.version'), undefined);
  });

  test('continue the trace of the caller, with the route, the status and the id of the request', () => {
    const request = named('POST /api/v1/notes');
    assert.deepEqual([request.parentSpanId, request.kind], [parentId, 2]);
    assert.equal(textAt(request.attributes, 'http.route'), '/api/v1/notes');
    assert.equal(textAt(request.attributes, 'http.response.status_code'), '201');
    const id = textAt(request.attributes, 'comity.request_id') ?? '';
    const line = server
      .stderr()
      .split('\n')
      .find((each) => each.includes(id) && each.includes('"answered"'));
    assert.equal(JSON.parse(line ?? '{}').traceId, traceId);
  });

  test('have a hook and the commit within the request', () => {
    const request = named('POST /api/v1/notes');
    for (const name of ['the hook beforeWrite of notes', 'commit']) {
      const span = spans().find((each) => each.name === name && each.parentSpanId === request.spanId);
      assert.ok(span !== undefined, name);
      assert.ok(BigInt(span.startTimeUnixNano) >= BigInt(request.startTimeUnixNano));
      assert.ok(BigInt(span.endTimeUnixNano) <= BigInt(request.endTimeUnixNano));
    }
  });

  test('go on in the delivery, which carries the context of its attempt', () => {
    const request = named('POST /api/v1/notes');
    const attempt = named('POST notes.created');
    assert.deepEqual([attempt.parentSpanId, attempt.kind], [request.spanId, 3]);
    assert.equal(textAt(attempt.attributes, 'http.response.status_code'), '204');
    assert.equal(receiver.received[0]?.headers.traceparent, `00-${traceId}-${attempt.spanId}-01`);
  });

  test('go on in the subscriber', () => {
    const run = named('the subscriber copier');
    assert.deepEqual([run.parentSpanId, run.kind], [named('POST /api/v1/notes').spanId, 5]);
  });

  test('are new for a malformed context, and mark a failed request', () => {
    const failed = spans().find(
      ({ attributes }) => textAt(attributes, 'http.response.status_code') === '500',
    );
    assert.ok(failed !== undefined);
    assert.notEqual(failed.traceId, traceId);
    assert.equal(failed.parentSpanId, undefined);
    assert.equal(failed.status.code, 2);
    const hook = spans().find(
      ({ name, traceId: of }) => name.startsWith('the hook') && of === failed.traceId,
    );
    assert.equal(hook?.status.code, 2);
  });

  test('leave out what the caller does not sample', () => {
    assert.equal(
      spans().some((span) => span.traceId === 'a'.repeat(32)),
      false,
    );
  });
});

test('a program without a receiver of traces logs the trace of the caller, and sends no context', async (context) => {
  const receiver = await startDeliveryReceiver();
  const server = await startServer({ config, env: { ...localEgress, COMITY_LOG_LEVEL: 'debug' } });
  context.after(() => server.stop());
  await server.send('POST', '/api/v1/endpoints', { json: { url: `${receiver.url}/hook`, events: ['*'] } });
  await server.send('POST', '/api/v1/notes', { json: { text: 'one' }, headers: sampled });
  await until(() => receiver.received.length > 0);
  assert.equal(receiver.received[0]?.headers.traceparent, undefined);
  assert.match(server.stderr(), new RegExp(`"traceId":"${traceId}"`));
  const [event] = await server.list('/api/v1/events');
  assert.equal('traceparent' in (event ?? {}), false);
});

const read = (environment: Record<string, string>): TraceTarget | undefined =>
  readTraceTarget({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318/', ...environment });

describe('the variables of OpenTelemetry', () => {
  test('turn traces on and off', () => {
    assert.equal(readTraceTarget({}), undefined);
    assert.equal(read({ OTEL_SDK_DISABLED: 'true' }), undefined);
    assert.equal(read({ OTEL_TRACES_EXPORTER: 'none' }), undefined);
    assert.equal(read({})?.url, 'http://127.0.0.1:4318/v1/traces');
    const own = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://collector.example/otlp' };
    assert.equal(read(own)?.url, 'https://collector.example/otlp');
  });

  for (const [name, value, told] of [
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318', /must be an http or https URL/],
    ['OTEL_TRACES_EXPORTER', 'zipkin', /must be otlp or none, not zipkin/],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc', /must be http\/json, not grpc/],
    ['OTEL_TRACES_SAMPLER', 'jaeger_remote', /must be one of always_on/],
    ['OTEL_TRACES_SAMPLER_ARG', '2', /must be a number from 0 to 1/],
  ] as const)
    test(`are checked: ${name}`, async () => {
      assert.throws(() => read({ [name]: value }), told);
      const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318', [name]: value };
      const { code, stderr } = await runCommand(['check', '--config', config], environment);
      assert.equal(code, 2);
      assert.match(stderr, told);
    });

  test('sample a part of the traces', async () => {
    const target = read({ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' });
    assert.ok(target !== undefined);
    const tracing = await openTracing(target, '1');
    assert.match(tracing.begin({ name: 'x' }).traceparent, /-00$/);
    await tracing.close();
  });
});

const withoutPackages = `data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module';
  registerHooks({
    resolve(specifier, context, next) {
      if (!specifier.startsWith('@opentelemetry/')) return next(specifier, context);
      throw Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' });
    },
  });
`)}`;

test('traces that are asked for without their packages prevent the start, which names them', async () => {
  const environment = {
    COMITY_DATA: temporaryFolder(),
    COMITY_PORT: '0',
    NODE_OPTIONS: `--import=${withoutPackages}`,
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4318',
  };
  const { code, stderr } = await spawnCommand(['serve', '--config', config], environment).ended;
  assert.equal(code, 2, stderr);
  assert.match(stderr, /traces need packages that are not installed: npm install @opentelemetry\/api @open/);
});
