/**
 * The credential of a client: a key or a token that it was given, the cookie of the browser, or the pair of tokens of a session that it opens,
 * keeps in the given storage and renews.
 *
 * Many requests that find the access token expired wait for one exchange. Other tabs may exchange the same token meanwhile: the storage is
 * read again before and after, and the server answers an exchanged token with the same new pair for some seconds, which is what makes it
 * right. The lock over tabs only saves requests: Bun and pages over plain HTTP have none, and a frozen tab holds it.
 */
import { ComityError } from './error.ts';

/** The methods that `localStorage`, `sessionStorage` and the storages of React Native share. */
export type SessionStorage = {
  getItem(name: string): string | null | Promise<string | null>;
  setItem(name: string, value: string): unknown;
  removeItem(name: string): unknown;
};

/** How a client proves who it is; without any it is anonymous until `auth.login`. */
export type Credential = {
  /** An access token, or a function that returns the one to use, which is asked again when it is refused. */
  readonly token?: string | (() => string | Promise<string>);
  /** An API key. */
  readonly key?: string;
  /** The session cookie, which the browser sends and no script can read. */
  readonly cookie?: boolean;
  /** Where the tokens of `auth.login` are kept. Absent: in memory. */
  readonly storage?: SessionStorage;
  /** The session is over: show the login. */
  readonly onSessionEnd?: () => void;
};

/** The content of the answer to each login. */
export type SessionTokens = {
  readonly token: string;
  readonly expiresIn: number;
  readonly refreshToken: string;
  readonly user: { readonly id: string; readonly email: string };
};

type Kept = {
  readonly token: string;
  readonly refreshToken: string;
  /** By the clock of this machine. */
  readonly expiresAt: number;
  /** The Idempotency-Key of the exchange of this refresh token, the same in all tabs and after a reload. */
  readonly key: string;
};

/** POST /auth/refresh. @param key the Idempotency-Key */
type Exchange = (refreshToken: string, key: string) => Promise<SessionTokens>;

/** Before it expires, so that requests under way do not find it expired. */
const earlyMs = 20_000;
/** For the exchange of another tab. A frozen one holds the lock as long as it is frozen. */
const lockWaitMs = 3_000;

/** 128 random bits. `randomUUID` is missing on pages over plain HTTP. */
export function drawKey(): string {
  const octets = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(octets, (octet) => octet.toString(16).padStart(2, '0')).join('');
}

export class Session {
  readonly #given: Credential;
  readonly #name: string;
  readonly #exchange: Exchange;
  /** Forgets what was read with another credential. */
  readonly #onChange: () => void;
  #kept: Kept | undefined;
  #refreshing: Promise<void> | undefined;

  constructor(baseUrl: string, given: Credential, exchange: Exchange, onChange: () => void) {
    this.#name = `comity:${baseUrl}`;
    this.#given = given;
    this.#exchange = exchange;
    this.#onChange = onChange;
  }

  /** True if the browser sends its cookies. */
  get sendsCookies(): boolean {
    return this.#given.cookie === true;
  }

  /** The value of Authorization; undefined: none. Fetch drops the field at another origin, unlike X-API-Key. */
  async authorization(): Promise<string | undefined> {
    const { key, token, cookie } = this.#given;
    if (key !== undefined) return `ApiKey ${key}`;
    if (token !== undefined) return `Bearer ${typeof token === 'string' ? token : await token()}`;
    if (cookie === true) return undefined;
    this.#kept ??= await this.#stored();
    if (this.#kept !== undefined && this.#kept.expiresAt - earlyMs < Date.now())
      await this.renew(this.#kept.token);
    return this.#kept && `Bearer ${this.#kept.token}`;
  }

  /**
   * @param refused the value that was refused @param asksWho the request asked whether there is a session
   * @returns true if the request may be sent again with another credential
   */
  async replace(refused: string | undefined, asksWho = false): Promise<boolean> {
    const { token, cookie, onSessionEnd } = this.#given;
    if (cookie === true && !asksWho) onSessionEnd?.();
    if (refused === undefined) return false;
    if (typeof token === 'function') return true;
    if (this.#kept === undefined) return false;
    await this.renew(refused.slice(refused.indexOf(' ') + 1));
    return this.#kept !== undefined;
  }

  async open({ token, refreshToken, expiresIn }: SessionTokens): Promise<void> {
    this.#onChange();
    if (!this.sendsCookies) await this.#keep({ token, refreshToken, expiresIn });
  }

  /** Forgets the tokens. */
  async close(): Promise<void> {
    this.#kept = undefined;
    this.#onChange();
    await this.#given.storage?.removeItem(this.#name);
  }

  /**
   * Exchanges the refresh token, once for all who ask meanwhile. @param used the access token that is of no use; another one is there already
   * if a request with it comes late
   */
  async renew(used = this.#kept?.token): Promise<void> {
    if (this.#kept !== undefined && this.#kept.token !== used) return;
    this.#refreshing ??= this.#alone(() => this.#renew()).finally(() => {
      this.#refreshing = undefined;
    });
    return this.#refreshing;
  }

  async #renew(): Promise<void> {
    const before = this.#kept;
    if (before === undefined || (await this.#adopt(before))) return;
    const exchanged = await this.#exchange(before.refreshToken, before.key).catch((error: unknown) => error);
    // Another tab may have logged out, or in again, while the answer was under way: what it left stays.
    if (await this.#adopt(before)) return;
    if (!(exchanged instanceof Error)) return this.#keep(exchanged as SessionTokens);
    if (exchanged instanceof ComityError && exchanged.status === 401) await this.#end();
    throw exchanged;
  }

  /** Takes what another tab has put in the place of these tokens. @returns true if that is so */
  async #adopt(before: Kept): Promise<boolean> {
    if (this.#given.storage === undefined) return this.#kept !== before;
    const stored = await this.#stored();
    if (stored?.refreshToken === before.refreshToken) return false;
    this.#kept = stored;
    if (stored === undefined) await this.#end();
    return true;
  }

  async #end(): Promise<void> {
    await this.close();
    this.#given.onSessionEnd?.();
  }

  async #keep(tokens: Omit<SessionTokens, 'user'>): Promise<void> {
    const { token, refreshToken, expiresIn } = tokens;
    this.#kept = { token, refreshToken, expiresAt: Date.now() + expiresIn * 1000, key: drawKey() };
    await this.#given.storage?.setItem(this.#name, JSON.stringify(this.#kept));
  }

  async #stored(): Promise<Kept | undefined> {
    const text = await this.#given.storage?.getItem(this.#name);
    try {
      return text ? (JSON.parse(text) as Kept) : undefined;
    } catch {
      return undefined; // Something else keeps its text there.
    }
  }

  /** Runs while no other tab does, as far as that can be had. */
  async #alone(run: () => Promise<void>): Promise<void> {
    const { locks } = globalThis.navigator ?? {};
    if (this.#given.storage === undefined || locks === undefined) return run();
    let running: Promise<void> | undefined;
    const begin = (): Promise<void> => {
      running ??= run();
      return running;
    };
    // The signal ends the wait only: once the lock is there, `begin` runs to its end.
    await locks.request(this.#name, { signal: AbortSignal.timeout(lockWaitMs) }, begin).catch(() => begin());
  }
}
