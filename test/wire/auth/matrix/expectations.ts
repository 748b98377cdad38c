/**
 * What every cell of the matrix must answer, written down by hand from the specification, so that nothing here is computed by what is
 * judged. Two tables: how each carrier is refused, and what each caller may do.
 */

export const operations = [
  'GET',
  'list',
  'QUERY',
  'POST',
  'PATCH',
  'DELETE',
  'bulk-delete',
  'stream',
] as const;
export type OperationName = (typeof operations)[number];

export const collections = ['pages', 'records', 'notes'] as const;
export type CollectionName = (typeof collections)[number];

export const carriers = [
  'Basic, password',
  'Basic, key',
  'Bearer, access token',
  'Bearer, key',
  'Bearer, trusted issuer',
  'Authorization: ApiKey',
  'Authorization: Api-Key',
  'X-API-Key',
  '?api_key=',
  'session cookie',
] as const;
export type CarrierName = (typeof carriers)[number];

/** Carriers that a publishable key may come by besides. */
export const publishableCarriers = carriers.filter(
  (name) => name.includes('key') || name.includes('Key') || name === '?api_key=',
);

export const faults = ['empty', 'malformed', 'unknown', 'expired', 'revoked', 'rotated'] as const;
export type Fault = (typeof faults)[number];

export type Refusal = {
  readonly status: number;
  readonly error: string;
  readonly code: string;
  /** The whole of WWW-Authenticate; undefined: the field is not there. */
  readonly challenges: string | undefined;
};

/** §5.1: one list of every scheme that would be accepted; a cookie has no scheme. */
const challenges = 'Bearer realm="comity", ApiKey realm="comity", Basic realm="comity", charset="UTF-8"';
/** RFC 6750 §3.1: told only to who brought a token. */
const tokenChallenges =
  'Bearer realm="comity", error="invalid_token", ApiKey realm="comity", Basic realm="comity", charset="UTF-8"';

/** §7: by the letter that stands in the tables. */
export const refusals: Readonly<Record<string, Refusal>> = {
  N: { status: 401, error: 'no token provided', code: 'no_token_provided', challenges },
  T: { status: 401, error: 'invalid token', code: 'invalid_token', challenges: tokenChallenges },
  K: { status: 401, error: 'invalid API key', code: 'invalid_api_key', challenges },
  R: { status: 401, error: 'API key required', code: 'api_key_required', challenges },
  C: { status: 401, error: 'invalid credentials', code: 'invalid_credentials', challenges },
  // RFC 9110 §15.5.4: it is not about credentials, so it challenges nobody.
  F: { status: 403, error: 'not permitted', code: 'forbidden', challenges: undefined },
  // What belongs to another is not there.
  H: { status: 404, error: 'not found', code: 'not_found', challenges: undefined },
};

/**
 * A credential that is not good is refused whatever it is used for, also where none is needed (§5.1).
 * A dash: the carrier has no such credential; the last column says why. An equals sign: it counts for nothing, as if nobody asked.
 */
const refusalTable = `
  carrier                 empty  malformed  unknown  expired  revoked  rotated  because
  Basic, password         C      C          C        -        C        -        §5.2; passwords end by being changed alone
  Basic, key              C      C          C        C        C        C        Basic wrong
  Bearer, access token    T      T          T        T        T        -        Bearer unusable
  Bearer, key             T      T          T        T        T        T        Bearer unusable, also where it holds a key
  Bearer, trusted issuer  T      T          T        T        -        -        the issuer alone revokes, by letting tokens expire
  Authorization: ApiKey   R      K          K        K        K        K        key scheme with an empty key; key unusable
  Authorization: Api-Key  R      K          K        K        K        K        the same
  X-API-Key               R      K          K        K        K        K        the same
  ?api_key=               R      K          K        K        K        K        the same
  session cookie          =      =          =        =        =        -        §5.2: a browser sends it by itself, so a dead one is as none
`;

export const callers = [
  'nobody',
  'wrong role',
  'other tenant',
  'right',
  'publishable key',
  'trusted issuer, wrong role',
  'trusted issuer, other tenant',
  'trusted issuer, right',
] as const;
export type Caller = (typeof callers)[number];

/**
 * What a caller gets. A number: the status, and what it means here; a letter: the refusal above. `seen` and `none`: 200 with or
 * without the resource in it. For bulk-delete the number is how many it deleted.
 *
 * pages: public reads, writes by role. records: reads by tenant, writes by role and tenant. notes: the owner alone.
 */
const permissionTable = `
  caller                        collection  GET  list  QUERY  POST  PATCH  DELETE  bulk-delete  stream  because
  nobody                        pages       200  seen  seen   N     N      N       N            seen    §5.2: read is public
  nobody                        records     N    N     N      N     N      N       N            none    §5.1; the log is open, each event is not
  nobody                        notes       N    N     N      N     N      N       N            none    §5.1
  wrong role                    pages       200  seen  seen   F     F      F       F            seen    §5.1: authenticated without the role
  wrong role                    records     200  seen  seen   F     F      F       F            seen    the tenant reads, the role writes
  wrong role                    notes       H    none  none   201   H      H       0            none    another's is 404
  other tenant                  pages       200  seen  seen   201   200    204     1            seen    pages have no tenant
  other tenant                  records     H    none  none   201   H      H       0            none    another tenant's is 404; its own it may make
  other tenant                  notes       H    none  none   201   H      H       0            none    another's is 404
  right                         pages       200  seen  seen   201   200    204     1            seen    all holds
  right                         records     200  seen  seen   201   200    204     1            seen    all holds
  right                         notes       200  seen  seen   201   200    204     1            seen    all holds
  publishable key               pages       200  seen  seen   F     F      F       F            seen    a publishable key has read alone
  publishable key               records     F    F     F      F     F      F       F            none    it stands in public pages: it is of no tenant
  publishable key               notes       H    none  none   F     F      F       F            none    and not its maker's hand
  trusted issuer, wrong role    pages       200  seen  seen   F     F      F       F            seen    as for accounts
  trusted issuer, wrong role    records     200  seen  seen   F     F      F       F            seen    as for accounts
  trusted issuer, wrong role    notes       H    none  none   201   H      H       0            none    as for accounts
  trusted issuer, other tenant  pages       200  seen  seen   201   200    204     1            seen    as for accounts
  trusted issuer, other tenant  records     H    none  none   201   H      H       0            none    as for accounts
  trusted issuer, other tenant  notes       H    none  none   201   H      H       0            none    as for accounts
  trusted issuer, right         pages       200  seen  seen   201   200    204     1            seen    as for accounts
  trusted issuer, right         records     200  seen  seen   201   200    204     1            seen    as for accounts
  trusted issuer, right         notes       H    none  none   201   H      H       0            none    its subject is no account: the notes are another's
`;

type Row = Readonly<Record<string, string>>;

/** Columns are told apart by two spaces or more. */
function rowsOf(table: string): readonly Row[] {
  const [header = [], ...rows] = table
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => line.trim().split(/ {2,}/));
  return rows.map((cells) => {
    if (cells.length !== header.length) throw new Error(`a row of the table is broken: ${cells.join(' | ')}`);
    return Object.fromEntries(header.map((name, at) => [name, cells[at] ?? '']));
  });
}

const refusalRows = new Map(rowsOf(refusalTable).map((row) => [row.carrier, row]));
const permissionRows = new Map(
  rowsOf(permissionTable).map((row) => [`${row.caller} ${row.collection}`, row]),
);

/** How the carrier is refused with this fault; `nobody`: not at all, but as nobody is; undefined: there is no such credential. */
export function refusalOf(carrier: CarrierName, fault: Fault): Refusal | 'nobody' | undefined {
  const letter = refusalRows.get(carrier)?.[fault];
  if (letter === undefined) throw new Error(`the table has no row for ${carrier}`);
  if (letter === '-') return undefined;
  if (letter === '=') return 'nobody';
  return knownRefusal(letter);
}

export type Permitted =
  | { readonly refusal: Refusal }
  | { readonly status: number }
  | { readonly seen: boolean }
  | { readonly deleted: number };

export function permittedTo(caller: Caller, collection: CollectionName, operation: OperationName): Permitted {
  const cell = permissionRows.get(`${caller} ${collection}`)?.[operation];
  if (cell === undefined) throw new Error(`the table has no row for ${caller} and ${collection}`);
  if (cell === 'seen' || cell === 'none') return { seen: cell === 'seen' };
  if (/^[A-Z]$/.test(cell)) return { refusal: knownRefusal(cell) };
  return operation === 'bulk-delete' ? { deleted: Number(cell) } : { status: Number(cell) };
}

function knownRefusal(letter: string): Refusal {
  const refusal = refusals[letter];
  if (refusal === undefined) throw new Error(`the table names a refusal that is not there: ${letter}`);
  return refusal;
}
