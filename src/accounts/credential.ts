/**
 * A credential as a carrier reads it, before verification (§5.2), and the contract of a carrier. `key`: an API key. `bearer`: a token
 * or a key. `password`: Basic. `session`: the session cookie.
 */
import type { RequestFields } from '../http/request-fields.ts';

export type Credential =
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'bearer'; readonly token: string }
  | { readonly kind: 'password'; readonly user: string; readonly password: string }
  | { readonly kind: 'session'; readonly cookie: string };

/** The carrier holds text that is not a credential. */
export type Unreadable = {
  readonly kind: 'unreadable';
  readonly problem:
    | 'invalid_token'
    | 'invalid_credentials'
    | 'invalid_api_key'
    | 'api_key_required'
    | 'credentials_repeated';
};

export type Carrier = {
  /** One letter that separates this carrier's cached credentials from those of others. */
  readonly mark: string;
  /** Returns the text in that place, as cheaply as possible; undefined if there is none. */
  find(fields: CarrierFields, query: string | undefined): string | Unreadable | undefined;
  /** Parses the text; the result depends on nothing else. */
  read(text: string): Credential | Unreadable;
  /** Tells whether the text may hold a password, which stays in memory only as a digest. */
  holdsPassword(text: string): boolean;
};

export type CarrierFields = Pick<
  RequestFields,
  'authorization' | 'xApiKey' | 'cookie' | 'proxyAuthorization'
>;
