/**
 * A credential as a carrier found it, before anyone has looked whether it is good (§5.2), and what a carrier is.
 * `key`: an API key. `bearer`: a token, which may also be a key. `password`: Basic. `session`: the value of the cookie.
 */
import type { RequestFields } from '../http/request-fields.ts';

export type Credential =
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'bearer'; readonly token: string }
  | { readonly kind: 'password'; readonly user: string; readonly password: string }
  | { readonly kind: 'session'; readonly cookie: string };

/** The carrier was used but holds nothing that could be a credential. */
export type Unreadable = {
  readonly kind: 'unreadable';
  readonly problem:
    | 'invalid_token'
    | 'invalid_credentials'
    | 'invalid_api_key'
    | 'api_key_required'
    | 'credentials_repeated';
};

/** One place of a request where a credential may stand. */
export type Carrier = {
  /** A letter of its own, which keeps what is remembered of this carrier apart from the others. */
  readonly mark: string;
  /** The text that stands there, as cheaply as can be; undefined: nothing does. */
  find(fields: CarrierFields, query: string | undefined): string | Unreadable | undefined;
  /** What the text says. The same text always says the same. */
  read(text: string): Credential | Unreadable;
  /** Whether the text may hold a password, which stays in memory as a digest alone. */
  holdsPassword(text: string): boolean;
};

export type CarrierFields = Pick<
  RequestFields,
  'authorization' | 'xApiKey' | 'cookie' | 'proxyAuthorization'
>;
