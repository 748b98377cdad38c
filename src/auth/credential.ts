/**
 * A credential as a carrier found it, before anyone has looked whether it is good (§5.2).
 * `key`: an API key. `bearer`: a token, which may also be a secret key. `password`: Basic.
 */
export type Credential =
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'bearer'; readonly token: string }
  | { readonly kind: 'password'; readonly user: string; readonly password: string }
  /** The carrier was used but holds nothing readable. */
  | {
      readonly kind: 'unreadable';
      readonly problem: 'invalid_token' | 'invalid_credentials' | 'invalid_api_key' | 'api_key_required';
    };

/** Looks in one place of the request; undefined: nothing there. */
export type Carrier = (
  request: { readonly authorization: string | undefined; readonly xApiKey: string | undefined },
  query: string | undefined,
) => Credential | undefined;
