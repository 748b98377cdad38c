/**
 * Sign-ins under way at a provider (§5.3; RFC 9700 §2.1): each belongs to one `state` and to one browser, and ends when it is taken.
 * Nothing that could finish one stands in the store: `state` and the browser's secret are kept as digests, and the code verifier of PKCE
 * and the nonce are derived from both, so that who sees the URL of a callback, or a backup, can compute neither.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { keptRow } from '../../store/kept-row.ts';
import type { Row, Store } from '../../store/store.ts';
import { digestOf } from '../digest.ts';
import { signInsTable } from '../tables.ts';

/** What is remembered from the start of a sign-in to its end. */
export type SignIn = {
  readonly provider: string;
  /** Where the browser goes afterwards; null: the answer is JSON. */
  readonly redirect: string | null;
  /** Whose account the identity is linked to, and by which session that was asked; null: a plain sign-in. */
  readonly link: { readonly user: string; readonly session: string } | null;
};

/** What the provider gets to see of a sign-in, and what proves it afterwards. */
export type Proofs = {
  readonly state: string;
  /** RFC 7636 §4.1. */
  readonly codeVerifier: string;
  readonly nonce: string;
};

export type SignIns = {
  /** @param browser the secret of the browser, as its cookie holds it */
  begin(signIn: SignIn, browser: string): Promise<Proofs>;
  /**
   * The sign-in of this `state`, which is over with that: undefined where it is unknown, used, too old, or belongs to another provider or
   * browser. One that belongs to another browser stays: who has stolen a `state` cannot spend it.
   */
  take(
    provider: string,
    state: string,
    browser: string,
  ): Promise<{ readonly signIn: SignIn; readonly proofs: Proofs } | undefined>;
};

export type SignInsOptions = {
  readonly store: Pick<Store, 'read' | 'commit'>;
  readonly clock: () => number;
  readonly random: (count: number) => Buffer;
  readonly signInSeconds: number;
};

type Doc = SignIn & { readonly browser: string };

const secretBytes = 32;

export function createSignIns({ store, clock, random, signInSeconds }: SignInsOptions): SignIns {
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
    if (commit.outcome !== 'committed') throw new Error('a state of 256 random bits was drawn twice');
    return proofsOf(state, browser);
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
    return commit.outcome === 'committed' ? { signIn, proofs: proofsOf(state, browser) } : undefined;
  }

  function isOver(row: Row): boolean {
    return clock() >= row.createdAt + signInSeconds * 1000;
  }

  return { begin, take };
}

/** Whether the text can be a state or the secret of a browser: 256 bits in base64url. */
export function isSecret(text: string): boolean {
  return secretText.test(text);
}

const secretText = /^[A-Za-z0-9_-]{43}$/;

function proofsOf(state: string, browser: string): Proofs {
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
