/**
 * `comity/testing`: an application in the process of its tests (docs/guides/testing.md). It is the program itself over a store in a temporary
 * folder, without a port. Replaced are the clock, the timers of due work, and what would leave the process: mails and requests to receivers
 * of webhooks. Any number run side by side.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import util from 'node:util';
import type { Comity, PrincipalDeclaration } from './comity.ts';
import {
  type ConfigurationDeclaration,
  type Configured,
  definedIn,
  moduleSentence,
  type ResourcesIn,
} from './config/define.ts';
import type { SettingOverrides } from './config/settings.ts';
import type { Exchange } from './egress/exchange.ts';
import type { Transport } from './mail/smtp.ts';
import type { Account, AccountFields, Document } from './model/logic/collection-calls.ts';
import { operatorId, scopes } from './model/principal.ts';
import type { Observation } from './observe/observation.ts';
import { createSourceStacks } from './observe/source-stack.ts';
import { refuseOldNode } from './package-version.ts';
import type { Timers } from './work/timers.ts';

export type TestOptions = {
  /** The time at the start, which stands still until the test turns the clock. Default: the present. */
  readonly now?: Date | string;
  readonly settings?: SettingOverrides;
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /**
   * The module whose default export is the configuration, which functions on threads are imported from. By default the file that called
   * `defineConfig`, if it exports this configuration by default.
   */
  readonly module?: URL;
};

export type TestClock = {
  readonly now: () => Date;
  /** Turns the clock to a time. Due work that the program waited for begins. */
  set(time: Date | string): void;
  advance(ms: number): void;
};

export type CapturedMail = {
  readonly to: readonly string[];
  readonly subject: string;
  readonly text: string;
};

/** A request to a receiver, which learns that it was answered with 200. */
export type CapturedWebhook = {
  readonly url: string;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** The body as JSON. */
  json(): unknown;
};

export type NewAccount = {
  readonly email: string;
  readonly name?: string;
  readonly roles?: readonly string[];
  readonly scopes?: readonly string[];
  readonly tenant?: string;
};

/** The application for one caller. */
export type TestCaller<R> = {
  /** The calls with the rights of this caller. */
  readonly resources: R;
  /** A request of this caller, by a path or a whole URL. An account is sent as a principal; no credential is needed. */
  readonly fetch: (path: string | URL | Request, init?: RequestInit) => Promise<Response>;
};

export type TestComity<R> = Pick<Comity<R>, 'close' | 'resources'> & {
  /** A request by a path or a whole URL, without a credential unless it brings one. */
  readonly fetch: TestCaller<R>['fetch'];
  /** The key of the administrator, for requests. */
  readonly adminKey: string;
  readonly as: (principal: PrincipalDeclaration) => TestCaller<R>;
  /** Accounts, with the fields that the configuration declares for them. */
  readonly accounts: {
    create(account: NewAccount & AccountFields): Promise<Document<Account> & AccountFields>;
  };
  readonly clock: TestClock;
  /** Mails in the order in which they were sent. */
  readonly mails: readonly CapturedMail[];
  /** Requests to endpoints and other receivers. */
  readonly webhooks: readonly CapturedWebhook[];
  /** What functions of the application threw, in requests, calls of `resources`, and on threads. */
  readonly failures: readonly unknown[];
  /** Waits until the function returns something other than undefined or false. @throws after the time, by default 60 seconds */
  until<T>(find: () => T | Promise<T>, withinMs?: number): Promise<Exclude<T, undefined | false>>;
};

refuseOldNode();

const origin = 'http://comity.test';

/** A file system in memory, of Linux: a store there starts in 20 ms instead of 150. */
const memoryFolder = '/dev/shm';

/**
 * Starts the application. `close` it after the test: that removes its data.
 * @throws ConfigurationError with every mistake
 */
export async function createTestComity<C>(
  declaration: ConfigurationDeclaration & Partial<Pick<Configured<C>, 'collections'>>,
  { now = new Date(), settings = {}, environment = {}, module }: TestOptions = {},
): Promise<TestComity<ResourcesIn<C>>> {
  type Calls = ResourcesIn<C>;
  // The caller's file would wait for itself.
  const [, caller] = util.getCallSites(2);
  const file = module?.href ?? (await moduleOf(declaration, caller?.scriptName)) ?? noModule;
  const folder = mkdtempSync(join(existsSync(memoryFolder) ? memoryFolder : tmpdir(), 'comity-test-'));
  const adminKey = `sk_test_${randomBytes(16).toString('hex')}`;
  const secretKey = randomBytes(32).toString('base64');
  const clock = new TurnedClock(new Date(now));
  const mails: CapturedMail[] = [];
  const webhooks: CapturedWebhook[] = [];
  const failures: unknown[] = [];
  const sourceStack = createSourceStacks();
  const keep = (error: unknown): void => {
    for (let each = error; each instanceof Error; each = each.cause)
      each.stack = sourceStack(each.stack ?? '');
    failures.push(error);
  };
  const { embed } = await import('./embed.ts');
  const comity = await embed<Calls>(
    { ...declaration, settings: { adminKey, secretKey, ...declaration.settings, ...settings } },
    { ...environment, COMITY_DATA: folder },
    {
      module: file,
      clock: () => clock.ms,
      observe: (observation) => {
        if (observation.kind === 'failed') keep(observation.error);
        else if (observation.kind === 'function-failed') keep(failureOf(observation));
      },
      outside: {
        timers: clock,
        mail: captureMails(mails),
        exchange: captureWebhooks(webhooks),
      },
    },
  );
  const administrator = { id: operatorId, scopes };
  return {
    ...{ clock, mails, webhooks, failures, adminKey },
    resources: recording(comity.resources, keep),
    until: (find, withinMs = untilMs) => until(find, withinMs, failures),
    fetch: (path, init) => comity.fetch(requestOf(path, init)),
    as: (principal) => ({
      resources: recording(comity.resources.as(principal), keep),
      fetch: (path, init) => comity.fetch(requestOf(path, init), { as: principal }),
    }),
    accounts: {
      create: async (account) => {
        const request = requestOf(`${declaration.base ?? '/api/v1'}/users`, {
          method: 'POST',
          headers: { 'Content-Type': 'application/json' },
          body: JSON.stringify(account),
        });
        const response = await comity.fetch(request, { as: administrator });
        const made = (await response.json()) as Document<Account> &
          AccountFields & { readonly error?: string };
        if (response.status !== 201) throw new Error(`the account was not created: ${made.error}`);
        return made;
      },
    },
    async close() {
      await comity.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Subscribers, jobs and handlers fail with the sentence when they are called: other tests need no threads. */
const noModule = `data:text/javascript,throw new Error(${encodeURIComponent(JSON.stringify(`subscribers, jobs and handlers ${moduleSentence}`))})`;

/** The file whose default export is the declaration. A bundler of tests may have evaluated it apart: then the names of its functions decide. */
async function moduleOf(declaration: object, caller: string | undefined): Promise<string | undefined> {
  const file = urlOf(definedIn(declaration));
  if (file === undefined || file === urlOf(caller)) return undefined;
  try {
    const { default: exported } = (await import(file)) as { readonly default?: object };
    if (exported === declaration) return file;
    const isTwin = exported !== undefined && urlOf(definedIn(exported)) === file;
    return isTwin && namesOf(exported) === namesOf(declaration) ? file : undefined;
  } catch {
    // Only a bundler understands the file.
    return undefined;
  }
}

function urlOf(file: string | undefined): string | undefined {
  if (file === undefined || file.startsWith('file:')) return file;
  return isAbsolute(file) ? pathToFileURL(file).href : undefined;
}

function namesOf(declaration: object): string {
  const { senders = {}, subscribers = {}, jobs = {} } = declaration as ConfigurationDeclaration;
  return JSON.stringify([senders, subscribers, jobs].map((each) => Object.keys(each)));
}

function requestOf(path: string | URL | Request, init: RequestInit | undefined): Request {
  return path instanceof Request ? new Request(path, init) : new Request(new URL(path, origin), init);
}

/** A clock that stands still until it is turned. Timers run when they would, or when the clock is turned past their time. */
class TurnedClock implements TestClock, Timers {
  ms: number;
  readonly #waiting = new Set<{ readonly at: number; readonly run: () => void }>();

  constructor(start: Date) {
    this.ms = timeOf(start);
  }

  readonly now = (): Date => new Date(this.ms);

  set(time: Date | string): void {
    this.ms = timeOf(new Date(time));
    for (const each of this.#waiting) if (each.at <= this.ms) each.run();
  }

  advance(ms: number): void {
    this.set(new Date(this.ms + ms));
  }

  readonly monotonic = (): number => performance.now();

  after(delayMs: number, call: () => void): () => void {
    const cancel = (): void => {
      clearTimeout(timer);
      this.#waiting.delete(waiting);
    };
    const run = (): void => {
      cancel();
      call();
    };
    const timer = setTimeout(run, delayMs).unref();
    const waiting = { at: this.ms + delayMs, run };
    this.#waiting.add(waiting);
    return cancel;
  }
}

function timeOf(time: Date): number {
  const ms = time.getTime();
  if (Number.isNaN(ms)) throw new TypeError('the time of a test must be a Date or an ISO 8601 text');
  return ms;
}

function captureMails(mails: CapturedMail[]): Transport {
  return async ({ recipients, subject, text, html }) => {
    mails.push({ to: recipients, subject, text: text ?? html ?? '' });
    return { kind: 'answered', refusals: [] };
  };
}

/** The receiver of a test takes everything. */
function captureWebhooks(webhooks: CapturedWebhook[]): Exchange {
  return ({ url, fields, body }, done) => {
    const headers: Record<string, string> = {};
    for (let at = 0; at + 1 < fields.length; at += 2)
      headers[String(fields[at]).toLowerCase()] = String(fields[at + 1]);
    const text = typeof body === 'string' ? body : Buffer.from(body).toString();
    webhooks.push({ url: url.href, headers, body: text, json: () => JSON.parse(text) as unknown });
    const timing = { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null, totalMs: 0 };
    done({
      ...{ kind: 'answered', status: 200, fields: [], snippet: '', cut: null },
      ...{ protocol: 'http/1.1', reused: false, address: null, timing },
    });
  };
}

/** Functions on threads have a low priority: beside other work on every processor the first of them took more than 5 s to begin. */
const untilMs = 60_000;
const lookMs = 5;

async function until<T>(
  find: () => T | Promise<T>,
  withinMs: number,
  failures: readonly unknown[],
): Promise<Exclude<T, undefined | false>> {
  const end = performance.now() + withinMs;
  const before = failures.length;
  for (;;) {
    const found = await find();
    if (found !== undefined && found !== false) return found as Exclude<T, undefined | false>;
    if (performance.now() > end) {
      const meanwhile = failures.slice(before);
      const told = meanwhile.map((failure) => `\nmeanwhile: ${failure}`).join('');
      throw new Error(`nothing was found within ${withinMs} ms: ${find.toString()}${told}`, {
        cause: meanwhile[0],
      });
    }
    await pause(lookMs);
  }
}

/** The error of a function on a thread, whose stack came as text. */
function failureOf({ sender, attempt, failure, reason, frames }: FunctionFailed): Error {
  const error = new Error(`${sender} failed (attempt ${attempt}): ${reason ?? failure}`);
  error.name = 'FunctionFailed';
  error.stack = `${error}${frames === undefined ? '' : `\n${frames}`}`;
  return error;
}

type FunctionFailed = Extract<Observation, { kind: 'function-failed' }>;

/** The calls on collections, which add what a hook throws to the failures. */
function recording<R>(resources: R, keep: (error: unknown) => void): R {
  const wrapped = (owner: object, call: Call): Call => {
    return async (...args) => {
      try {
        return await Reflect.apply(call, owner, args);
      } catch (error) {
        if (error instanceof Error && error.name === 'FunctionFailed') keep(error);
        throw error;
      }
    };
  };
  const calls = (collection: object): object =>
    new Proxy(collection, {
      get: (target, name, receiver) => {
        const call: unknown = Reflect.get(target, name, receiver);
        return typeof call === 'function' ? wrapped(target, call as Call) : call;
      },
    });
  return new Proxy(resources as object, {
    get: (target, name, receiver) => {
      const member: unknown = Reflect.get(target, name, receiver);
      if (name === 'as')
        return (principal: PrincipalDeclaration) => recording((member as As)(principal), keep);
      return typeof member === 'object' && member !== null ? calls(member) : member;
    },
  }) as R;
}

type Call = (...args: unknown[]) => unknown;
type As = (principal: PrincipalDeclaration) => object;
