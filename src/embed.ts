/** The program that `createComity` creates, read from its declaration, with what comity/testing replaces. */
import type { Comity, PrincipalDeclaration, ResourcesAs } from './comity.ts';
import { resolveConfiguration } from './config/configuration.ts';
import type { ConfigurationDeclaration } from './config/define.ts';
import { attempt, ConfigurationError, isRecord, kindOf, suggestion } from './config/inspection.ts';
import { loadSettings } from './config/load-settings.ts';
import { findNamesInFunctions } from './config/named-in-functions.ts';
import { readSenderSecrets } from './config/sender-secrets.ts';
import type { Exchange } from './egress/exchange.ts';
import type { Transport } from './mail/smtp.ts';
import { anonymous, authenticated, operatorId, type Principal, scopes } from './model/principal.ts';
import { createLog } from './observe/log.ts';
import { createMetrics } from './observe/metrics.ts';
import { fanOut, type Observe } from './observe/observation.ts';
import { readTraceTarget } from './observe/tracing.ts';
import { composeMounted, type Running } from './running.ts';
import type { Timers } from './work/timers.ts';

/** What a program that embeds another one replaces: comity/testing. */
export type EmbedOptions = {
  readonly module: string | undefined;
  readonly clock?: () => number;
  readonly observe?: Observe;
  /** As in compose.ts, whose type would bring the types of all packages to an importer of these. */
  readonly outside?: {
    readonly timers: Timers;
    readonly mail: Transport;
    readonly exchange: Exchange;
  };
};

export async function embed<R>(
  declaration: ConfigurationDeclaration,
  environment: Readonly<Record<string, string | undefined>>,
  options: EmbedOptions,
): Promise<Comity<R>> {
  const { module } = options;
  const from = module?.startsWith('file:') === true ? new URL(module) : undefined;
  const { configuration, loaded, senderSecrets, traces } = await readDeclaration(
    declaration,
    environment,
    from,
  );
  const { settings, providers, sources } = loaded;
  const metrics = createMetrics();
  const log = options.observe ?? createLog({ level: settings.logLevel });
  const observe = fanOut(log, metrics.observe);
  const toPrincipal = (declared: PrincipalDeclaration): Principal =>
    principalOf(declared, configuration.accounts.fieldNames);
  const { callsAs, madeSecrets, stop, fetch, ...shown } = await composeMounted({
    ...{ ...options, configuration, settings, providers, sources, senderSecrets, observe, metrics },
    traceTarget: traces.target,
  });
  return {
    ...shown,
    fetch: (request, { address, as } = {}) =>
      fetch(request, { address, as: as === undefined ? undefined : toPrincipal(as) }),
    resources: resourcesAs<R>(callsAs, toPrincipal),
    senderSecrets: new Map(madeSecrets.map(({ variable, secret }) => [variable, secret])),
    close: () => stop('closed by its program'),
  };
}

/** @throws ConfigurationError with the mistakes of all three */
async function readDeclaration(
  declaration: ConfigurationDeclaration,
  environment: Readonly<Record<string, string | undefined>>,
  from: URL | undefined,
) {
  const errors: ConfigurationError[] = [];
  const inFunctions = from === undefined ? undefined : await findNamesInFunctions(from, 'checked');
  const configuration = await attempt(errors, () =>
    resolveConfiguration(declaration, undefined, from, inFunctions),
  );
  const configured = configuration?.settings ?? errors[0]?.settings;
  const loaded = await attempt(errors, () => loadSettings(environment, configured));
  const senderSecrets = await attempt(errors, () =>
    readSenderSecrets(environment, configuration?.senders ?? new Map()),
  );
  const traces = await attempt(errors, () => ({ target: readTraceTarget(environment) }));
  if (
    configuration === undefined ||
    loaded === undefined ||
    senderSecrets === undefined ||
    traces === undefined
  )
    throw new ConfigurationError(errors.flatMap(({ mistakes }) => mistakes));
  return { configuration, loaded, senderSecrets, traces };
}

function resourcesAs<R>(
  callsAs: Running['callsAs'],
  toPrincipal: (declared: PrincipalDeclaration) => Principal,
): ResourcesAs<R> {
  // What `callsAs` gives are the collections of any configuration; the types are those of this one.
  const as = (principal: PrincipalDeclaration): R => callsAs(toPrincipal(principal)) as R;
  const own = as({ id: operatorId, scopes }) as object;
  return new Proxy(own, {
    get: (collections, name, receiver) => (name === 'as' ? as : Reflect.get(collections, name, receiver)),
  }) as ResourcesAs<R>;
}

/** @throws TypeError */
function principalOf(declared: PrincipalDeclaration, fieldNames: ReadonlySet<string>): Principal {
  if (declared === null) return anonymous;
  const checked = checkedPrincipal(declared);
  const { id, roles = [], scopes: granted = ['read', 'write'], tenant = null } = checked;
  const { fields = Object.fromEntries(Object.entries(checked).filter(([name]) => fieldNames.has(name))) } =
    checked;
  return authenticated({
    ...{ id, roles, tenant, scopes: scopes.filter((scope) => granted.includes(scope)) },
    fields: structuredClone(fields),
  });
}

/** Without the check, a name in place of an account would be a caller who may read nothing. */
function checkedPrincipal(declared: unknown): NonNullable<PrincipalDeclaration> {
  const expected =
    'a principal must be an account, or { id, roles, scopes, tenant } with a string as id; null is a caller without a credential';
  if (!isRecord(declared)) throw new TypeError(`${expected}; not ${kindOf(declared)}`);
  const { id, roles, scopes: granted } = declared;
  if (typeof id !== 'string' || id === '') throw new TypeError(`${expected}; its id is ${kindOf(id)}`);
  for (const [name, list] of Object.entries({ roles, scopes: granted })) {
    const isList =
      list === undefined || (Array.isArray(list) && list.every((each) => typeof each === 'string'));
    if (!isList) throw new TypeError(`${name} of a principal must be a list of strings`);
  }
  const known: ReadonlySet<string> = new Set(scopes);
  const unknown = (granted as readonly string[] | undefined)?.find((scope) => !known.has(scope));
  if (unknown !== undefined) {
    throw new TypeError(
      `"${unknown}" is not a scope; scopes are ${scopes.join(', ')}${suggestion(unknown, scopes)}`,
    );
  }
  return declared as NonNullable<PrincipalDeclaration>;
}
