/**
 * Pending sign-ins at a provider (§5.3; RFC 9700 §2.1). Each belongs to one `state` and one browser, and is used once. The store holds
 * nothing that could finish one: `state` and the browser's secret are stored as digests, and the PKCE code verifier and the nonce are
 * derived from both, so that neither the URL of a callback nor a backup reveals them.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { readCookie } from '../../http/syntax/cookie.ts';
import type { Services } from '../../store/capabilities.ts';
import { keptRow, type Row } from '../../store/store.ts';
import { digestOf, signInsTable } from '../account-tables.ts';

export type SignIn = {
  readonly provider: string;
  /** Where the browser goes afterwards; null: the response is JSON. */
  readonly redirect: string | null;
  /** The account to link the identity to, and the session that requested it; null for a plain sign-in. */
  readonly link: { readonly user: string; readonly session: string } | null;
};

/** Values sent to the provider, which prove the sign-in at its end. */
export type Proofs = {
  readonly state: string;
  /** RFC 7636 §4.1. */
  readonly codeVerifier: string;
  readonly nonce: string;
};

export type SignIns = {
  /** @param browser the secret from the browser's cookie */
  begin(signIn: SignIn, browser: string): Promise<Proofs>;
  /**
   * Takes the sign-in of this `state`, which cannot be used again. Undefined if it is unknown, used, expired, or of another provider or
   * browser; in the last case it stays, so that a stolen `state` cannot end it.
   */
  take(
    provider: string,
    state: string,
    browser: string,
  ): Promise<{ readonly signIn: SignIn; readonly proofs: Proofs } | undefined>;
};

type Doc = SignIn & { readonly browser: string };

const secretBytes = 32;

export function createSignIns({ store, clock, random, settings }: Services): SignIns {
  async function begin(signIn: SignIn, browser: string): Promise<Proofs> {
    const state = random(secretBytes).toString('base64url');
    const doc: Doc = { ...signIn, browser: digestOf(browser) };
    const now = clock();
    const commit = await store.commit({
      changes: [
        {
          table: signInsTable,
          id: digestOf(state),
          expect: { absent: true },
          next: keptRow(JSON.stringify(doc), null, now, now),
        },
      ],
      events: [],
    });
    if (commit.outcome !== 'committed')
      throw new Error('a new state of 256 random bits exists already: the random source is broken');
    return deriveProofs(state, browser);
  }

  async function take(provider: string, state: string, browser: string) {
    const id = digestOf(state);
    const row = await store.read(signInsTable, id);
    if (row === undefined || isOver(row)) return undefined;
    const { browser: owner, ...signIn } = JSON.parse(row.doc) as Doc;
    if (signIn.provider !== provider || !isEqual(owner, digestOf(browser))) return undefined;
    const commit = await store.commit({
      changes: [{ table: signInsTable, id, expect: { rev: row.rev }, next: null }],
      events: [],
    });
    return commit.outcome === 'committed' ? { signIn, proofs: deriveProofs(state, browser) } : undefined;
  }

  function isOver(row: Row): boolean {
    return clock() >= row.createdAt + settings.signInSeconds * 1000;
  }

  return { begin, take };
}

/** True if the text is formed like a state or a browser secret: 256 bits in base64url. */
export function isSecret(text: string): boolean {
  return secretText.test(text);
}

const secretText = /^[A-Za-z0-9_-]{43}$/;

function deriveProofs(state: string, browser: string): Proofs {
  return {
    state,
    codeVerifier: derive(browser, 'code verifier', state),
    nonce: derive(browser, 'nonce', state),
  };
}

function derive(browser: string, purpose: string, state: string): string {
  return createHmac('sha256', browser).update(`${purpose} ${state}`).digest('base64url');
}

function isEqual(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other));
}

/**
 * The cookie that binds a sign-in to its browser (RFC 9700 §4.7.1): a callback made in another browser lacks the secret, so an attacker
 * cannot sign a user in to the attacker's account. Attributes as for the session cookie, but always Lax, because the callback comes
 * from the provider's site. One secret serves all sign-ins of a browser, so that two windows do not disturb each other.
 */
const signInCookieName = '__Host-comity_sign_in';

/** Returns undefined if the cookie is missing or malformed. @param field value of Cookie */
export function readBrowserSecret(field: string | undefined): string | undefined {
  const value = field === undefined ? undefined : readCookie(field, signInCookieName);
  return typeof value === 'string' && isSecret(value) ? value : undefined;
}

export function setBrowserSecret(secret: string, seconds: number): readonly string[] {
  const attributes = `Path=/; Max-Age=${seconds}; HttpOnly; Secure; SameSite=Lax`;
  return ['Set-Cookie', `${signInCookieName}=${secret}; ${attributes}`];
}
