/**
 * Traces: spans of requests, commits, functions of the application, and attempts of deliveries, sent over OTLP by the packages of
 * OpenTelemetry, which a project installs itself. The work that a request causes belongs to its trace: events keep the span's context (W3C
 * Trace Context, `traceparent`), from which deliveries and subscribers continue.
 *
 * Off unless the standard variables name a receiver; then no package is loaded, and no caller has a `Tracing`.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Attributes, Context, Span, SpanKind, Tracer } from '@opentelemetry/api';
import type { Sampler } from '@opentelemetry/sdk-trace';
import { ConfigurationError } from '../config/inspection.ts';
import type { Handler, Request, Response } from '../http/message.ts';

/** Where spans go, from the variables of OpenTelemetry's specification. */
export type TraceTarget = {
  /** The URL of the receiver of spans: `http://collector:4318/v1/traces`. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  readonly sampler: { readonly name: string; readonly ratio: number };
  readonly attributes: Readonly<Record<string, string>>;
};

/** The work that a span measures. @param kind `server` for a request, `client` for one that Comity makes; absent: a part of the work under way */
type Part = {
  readonly name: string;
  readonly kind?: 'server' | 'client' | 'consumer';
  readonly attributes?: Attributes;
  /** The context of the span above; of a part, where none is under way here. */
  readonly parent?: string | undefined;
};

export type OpenSpan = {
  /** Its context, for what it causes. */
  readonly traceparent: string;
  end(attributes?: Attributes, error?: unknown): void;
};

export type Tracing = {
  /** The handler of requests, with a span for each. */
  serve(handler: Handler): Handler;
  /** Runs a part of the work as a span, until what it returns is settled. */
  within<T>(part: Part, run: (span: OpenSpan) => T): T;
  /** Begins a span that its caller ends. */
  begin(part: Part): OpenSpan;
  /** True within a span of this process. */
  readonly isUnderWay: boolean;
  /** Sends what waits. */
  close(): Promise<void>;
};

const packages = ['api', 'sdk-trace', 'exporter-trace-otlp-http', 'resources'].map(
  (name) => `@opentelemetry/${name}`,
);
const timeoutMsDefault = 10_000;
/** Within the drain, which has its own bound. */
const closeMs = 3000;
const serverFaults = 500;
/** `00-<trace>-<span>-<flags>`; a later version may have more members (W3C Trace Context §3.2). */
const traceparentForm =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:$|-)/;

const lastSlash = /\/$/;
const httpScheme = /^https?:$/;
const pairForm = /^\s*([^=\s]+)\s*=\s*(\S.*)$/;

type Environment = Readonly<Record<string, string | undefined>>;

/** @returns undefined if no receiver is named, or traces are turned off @throws ConfigurationError */
export function readTraceTarget(environment: Environment): TraceTarget | undefined {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: base, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: own } = environment;
  const exporter = environment.OTEL_TRACES_EXPORTER || 'otlp';
  if ((!base && !own) || environment.OTEL_SDK_DISABLED === 'true' || exporter === 'none') return undefined;
  const mistakes: string[] = [];
  const variable = own ? 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT' : 'OTEL_EXPORTER_OTLP_ENDPOINT';
  const url = own || `${base?.replace(lastSlash, '')}/v1/traces`;
  if (!httpScheme.test(URL.parse(url)?.protocol ?? ''))
    mistakes.push(`${variable} must be an http or https URL, such as http://localhost:4318`);
  const protocol =
    environment.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL || environment.OTEL_EXPORTER_OTLP_PROTOCOL || 'http/json';
  if (exporter !== 'otlp') mistakes.push(`OTEL_TRACES_EXPORTER must be otlp or none, not ${exporter}`);
  if (protocol !== 'http/json')
    mistakes.push(
      `OTEL_EXPORTER_OTLP_PROTOCOL must be http/json, not ${protocol}; receivers of OTLP over HTTP take it`,
    );
  const sampler = samplerIn(environment, mistakes);
  if (mistakes.length > 0) throw new ConfigurationError(mistakes);
  const timeout = Number(
    environment.OTEL_EXPORTER_OTLP_TRACES_TIMEOUT ||
      environment.OTEL_EXPORTER_OTLP_TIMEOUT ||
      timeoutMsDefault,
  );
  return {
    url,
    headers: {
      ...pairsIn(environment.OTEL_EXPORTER_OTLP_HEADERS),
      ...pairsIn(environment.OTEL_EXPORTER_OTLP_TRACES_HEADERS),
    },
    timeoutMs: timeout > 0 ? timeout : timeoutMsDefault,
    sampler,
    attributes: {
      'service.name': 'comity',
      ...pairsIn(environment.OTEL_RESOURCE_ATTRIBUTES),
      ...(environment.OTEL_SERVICE_NAME ? { 'service.name': environment.OTEL_SERVICE_NAME } : {}),
    },
  };
}

const samplers = ['always_on', 'always_off', 'traceidratio'].flatMap((name) => [name, `parentbased_${name}`]);

function samplerIn(environment: Environment, mistakes: string[]): TraceTarget['sampler'] {
  const name = environment.OTEL_TRACES_SAMPLER || 'parentbased_always_on';
  const ratio = Number(environment.OTEL_TRACES_SAMPLER_ARG || 1);
  if (!samplers.includes(name))
    mistakes.push(`OTEL_TRACES_SAMPLER must be one of ${samplers.join(', ')}, not ${name}`);
  if (!(ratio >= 0 && ratio <= 1)) mistakes.push('OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1');
  return { name, ratio };
}

/** `name=value,name=value`, percent-encoded. */
function pairsIn(text = ''): Readonly<Record<string, string>> {
  const pairs = text.split(',').flatMap((pair) => {
    const [, name, value] = pairForm.exec(pair) ?? [];
    return name === undefined || value === undefined ? [] : [[name, decoded(value.trimEnd())] as const];
  });
  return Object.fromEntries(pairs);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A value with a bare percent sign stands for itself.
    return text;
  }
}

/** The trace id of a `traceparent`; undefined for none, and for a malformed one. */
export function traceIdOf(traceparent: string | undefined): string | undefined {
  return traceparent === undefined ? undefined : traceparentForm.exec(traceparent)?.[2];
}

/** The field of a request, as it was sent. */
export function traceparentIn(rawFields: readonly string[]): string | undefined {
  for (let at = 0; at < rawFields.length; at += 2) {
    if (rawFields[at]?.length === 11 && rawFields[at]?.toLowerCase() === 'traceparent')
      return rawFields[at + 1];
  }
  return undefined;
}

/** @throws ConfigurationError where the packages are not installed */
export async function openTracing(target: TraceTarget, version: string): Promise<Tracing> {
  const [api, sdk, exporter, resources] = await load();
  const { OTLPTraceExporter } = exporter;
  const { url, headers, timeoutMs: timeoutMillis, attributes } = target;
  const provider = new sdk.TracerProvider({
    resource: resources
      .defaultResource()
      .merge(resources.resourceFromAttributes({ ...attributes, 'service.version': version })),
    sampler: samplerOf(sdk, target.sampler),
    spanProcessors: [
      new sdk.BatchSpanProcessor({
        exporter: new OTLPTraceExporter({ url, headers: { ...headers }, timeoutMillis }),
      }),
    ],
  });
  return createTracing(api, provider.getTracer('comity', version), async () => {
    // A receiver that does not answer must not hold up the end of the program.
    await Promise.race([provider.shutdown(), new Promise((done) => setTimeout(done, closeMs).unref())]).catch(
      ignore,
    );
  });
}

function ignore(): void {
  // Spans are lost; the program ends all the same.
}

async function load() {
  try {
    return await Promise.all([
      import('@opentelemetry/api'),
      import('@opentelemetry/sdk-trace'),
      import('@opentelemetry/exporter-trace-otlp-http'),
      import('@opentelemetry/resources'),
    ]);
  } catch (error) {
    const sentence = `traces need packages that are not installed: npm install ${packages.join(' ')}; or unset OTEL_EXPORTER_OTLP_ENDPOINT`;
    throw new ConfigurationError([sentence], { cause: error });
  }
}

function samplerOf(
  sdk: typeof import('@opentelemetry/sdk-trace'),
  { name, ratio }: TraceTarget['sampler'],
): Sampler {
  const kind = name.replace('parentbased_', '');
  const root =
    kind === 'always_off'
      ? new sdk.AlwaysOffSampler()
      : kind === 'traceidratio'
        ? new sdk.TraceIdRatioBasedSampler(ratio)
        : new sdk.AlwaysOnSampler();
  return name.startsWith('parentbased_') ? new sdk.ParentBasedSampler({ root }) : root;
}

type Api = typeof import('@opentelemetry/api');

function createTracing(api: Api, tracer: Tracer, close: () => Promise<void>): Tracing {
  const running = new AsyncLocalStorage<Span>();
  const kinds: Readonly<Record<NonNullable<Part['kind']>, SpanKind>> = {
    server: api.SpanKind.SERVER,
    client: api.SpanKind.CLIENT,
    consumer: api.SpanKind.CONSUMER,
  };
  /** Work that a request woke runs on in its context after the request has ended, and is no part of it. */
  const current = (): Span | undefined => {
    const span = running.getStore();
    return span?.isRecording() === true ? span : undefined;
  };
  const contextOf = ({ kind, parent }: Part): Context => {
    const above = kind === undefined ? current() : undefined;
    if (above !== undefined) return api.trace.setSpan(api.ROOT_CONTEXT, above);
    const [, , traceId, spanId, flags = '0'] = traceparentForm.exec(parent ?? '') ?? [];
    if (traceId === undefined || spanId === undefined) return api.ROOT_CONTEXT;
    const traceFlags = Number.parseInt(flags, 16) & 1;
    return api.trace.setSpanContext(api.ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true });
  };
  const start = (part: Part): Span => {
    const { name, kind, attributes = {} } = part;
    const spanKind = kind === undefined ? api.SpanKind.INTERNAL : kinds[kind];
    return tracer.startSpan(name, { attributes, kind: spanKind }, contextOf(part));
  };
  const open = (span: Span): OpenSpan => openSpan(api, span);
  const within = <T>(part: Part, run: (span: OpenSpan) => T): T => {
    const span = start(part);
    const opened = open(span);
    return running.run(span, () =>
      untilSettled(
        () => run(opened),
        (error) => opened.end(undefined, error),
      ),
    );
  };
  return {
    within,
    serve: (handler) => (request) => {
      const span = start({
        name: request.method,
        kind: 'server',
        attributes: { 'http.request.method': request.method, 'comity.request_id': request.id },
        parent: traceparentIn(request.rawFields),
      });
      const opened = open(span);
      (request as { traceparent?: string }).traceparent = opened.traceparent;
      const end = (response: Pick<Response, 'status' | 'route' | 'code'>): void =>
        endRequest(span, opened, request, response);
      return running.run(span, () =>
        untilSettled(
          () => handler(request),
          (_error, response) => end(response ?? { status: serverFaults, code: 'internal' }),
        ),
      );
    },
    begin: (part) => open(start(part)),
    get isUnderWay() {
      return current() !== undefined;
    },
    close,
  };
}

function openSpan(api: Api, span: Span): OpenSpan {
  return {
    get traceparent() {
      const { traceId, spanId, traceFlags } = span.spanContext();
      return `00-${traceId}-${spanId}-0${traceFlags & 1}`;
    },
    end(attributes, error) {
      if (attributes !== undefined) span.setAttributes(attributes);
      if (error !== undefined) {
        span.setStatus({ code: api.SpanStatusCode.ERROR });
        span.setAttribute('error.type', error instanceof Error ? error.name : String(error));
      }
      span.end();
    },
  };
}

/** The name has the route, never the path: there are few, and a path may hold what is secret. */
function endRequest(
  span: Span,
  opened: OpenSpan,
  { method }: Request,
  { status, route, code }: Pick<Response, 'status' | 'route' | 'code'>,
): void {
  if (route !== undefined) span.updateName(`${method} ${route}`);
  opened.end(
    {
      'http.response.status_code': status,
      ...(route === undefined ? {} : { 'http.route': route }),
      ...(code === undefined ? {} : { 'comity.code': code }),
    },
    status >= serverFaults ? (code ?? String(status)) : undefined,
  );
}

/** Runs a function and ends what it is within: at once, or when the promise that it returns is settled. */
function untilSettled<T>(run: () => T, end: (error?: unknown, value?: Awaited<T>) => void): T {
  let value: T;
  try {
    value = run();
  } catch (error) {
    end(error);
    throw error;
  }
  if (!(value instanceof Promise)) {
    end(undefined, value as Awaited<T>);
    return value;
  }
  value.then(
    (settled) => end(undefined, settled),
    (error) => end(error),
  );
  return value;
}
