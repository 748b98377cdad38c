/**
 * `Api`: the description of a program that a client has at compile time. `comity types` prints one, and `ApiOf<typeof config>` is that of a configuration.
 * It names no type of Node, of TypeBox or of the program, because pages and workers compile it. At run time there is nothing of it: the
 * client knows names only by the calls that it gets.
 */

/**
 * The collections, actions, events and codes that a program serves.
 *
 * ```ts
 * export interface Api {
 *   collections: {
 *     tickets: {
 *       document: { id: string; createdAt: string; updatedAt: string; title: string; status: 'open' | 'solved'; customerId?: string };
 *       create: { title: string; status?: 'open' | 'solved'; customerId?: string };
 *       patch: { title?: string; status?: 'open' | 'solved' | null; customerId?: string | null };
 *       references: { customerId: 'customers' };
 *       actions: { merge: { on: 'member'; route: 'POST /merge'; input: { into: string }; output: { moved: number }; codes: 'ticket_closed' } };
 *     };
 *   };
 *   actions: { report: { route: 'GET /report'; input: { year: number }; output: string } };
 *   events: { 'invoice.paid': { invoiceId: string } };
 *   codes: 'ticket_closed';
 * }
 * ```
 *
 * The parts are objects of any kind, since an interface is not assignable to a type with an index signature. `ApiCollection` and `ApiAction`
 * say what is in them.
 */
export type Api = {
  /** `ApiCollection` by their names in URLs; `users` for the accounts. */
  readonly collections: object;
  /** `ApiAction` by name: those of no collection. */
  readonly actions?: object;
  /** `data.object` of the types of events that applications post, by type. Those of writes follow from the collections. */
  readonly events?: object;
  /** Codes with which functions refuse, such as hooks, beside those of the program and of actions. */
  readonly codes?: string;
};

/** A collection. */
export type ApiCollection = {
  /** A document as it is served, with `id`, `createdAt` and `updatedAt`, computed fields, and `deletedAt` with soft deletion. */
  readonly document: object;
  /** The content of a POST: members that the caller writes; those with a default are optional. */
  readonly create: object;
  /** The content of a PUT. Absent: as for `create`. */
  readonly replace?: object;
  /** The content of a PATCH, a merge patch (RFC 7396): all members optional; null where a member may be removed. */
  readonly patch: object;
  /** The collections that fields refer to, by the names of the fields: what `expand` follows. */
  readonly references?: object;
  /** The names that `counts` takes, as a union. Absent: any. */
  readonly counts?: string;
  /** `ApiAction` by name, each with `on`. */
  readonly actions?: object;
};

/** A file in a document; the octets are at `url`. */
export type ApiFile = {
  readonly id: string;
  readonly name: string;
  readonly type: string;
  readonly bytes: number;
  readonly digest: string;
  readonly url: string;
  /** Paths of smaller pictures of an image, by name. */
  readonly previews?: Readonly<Record<string, string>>;
};

/** An action. */
export type ApiAction = {
  /** For actions of a collection: whether the first argument of a call is the id of a member. */
  readonly on?: 'member' | 'collection';
  /** The method and the path below the member, the collection or the base: `POST /merge/{into}`. */
  readonly route: string;
  /** The input, with optional members where there is a default. A file is a `Blob`. Absent: the action takes none. */
  readonly input?: object;
  /** JSON as parsed, `string` for text, `Uint8Array` for octets. Absent or undefined: 204. */
  readonly output?: unknown;
  /** The codes that its handler refuses with, as a union. */
  readonly codes?: string;
};

/** The `Api` of a configuration's type, or of an `Api` itself: `ApiOf<typeof config>` with `import type config from './comity.config.ts'`. */
export type ApiOf<C> = C extends { readonly '~api'?: infer A } ? NonNullable<A> : C extends Api ? C : never;

/** The collections of a program by name. */
export type CollectionsOf<A> = A extends { readonly collections: infer C } ? C : never;

/** A member of a description, or a default where it is absent. */
export type PartOf<X, Name extends string, Default = never> = X extends { readonly [N in Name]: infer P }
  ? P
  : Default;

/** An event of the log. */
export type ClientEvent<Type extends string = string, O = unknown> = {
  readonly id: string;
  readonly object: 'event';
  readonly type: Type;
  /** Seconds since 1970. */
  readonly created: number;
  readonly data: { readonly object: O };
  readonly actor?: { readonly kind: string; readonly id: string | null };
  readonly requestId?: string;
};
