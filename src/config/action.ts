/**
 * Actions: requests beyond reading and writing documents, such as merging two tickets. `action({ ... })` declares one on each member of a
 * collection, on a collection, or on a path of its own; actions.ts checks it, src/logic/actions serves it.
 */
import type { Static, TObject, TSchema } from 'typebox';
import type { Rule } from '../model/access.ts';
import type { ActionDeclaration, ActionMethod, ActionPlace, Output } from '../model/logic/actions.ts';
import type { Document, Resources } from '../model/logic/collection-calls.ts';
import type { Logic, Refusing } from '../model/logic/logic.ts';

type Returned<O> = O extends Output<infer V> ? V : O extends TSchema ? Static<O> : unknown;

type CaptureNames<P extends string> = P extends `${string}{${infer Name}}${infer Rest}`
  ? Name | CaptureNames<Rest>
  : never;

/**
 * What a handler gets.
 * @template I the type of the input @template T the fields of the member's document @template R the calls on all collections
 */
export type Acting<
  I = unknown,
  T = Record<string, unknown>,
  R = Resources,
  Code extends string = string,
  On extends ActionPlace = 'member',
  Captures extends string = string,
> = Logic<R> &
  Refusing<Code> & {
    /** The id of the member. */
    readonly id: [On] extends ['member'] ? string : undefined;
    /** The member as it is stored, with all members. The action runs again if it is changed before the action is committed. */
    readonly document: [On] extends ['member'] ? Document<T> : undefined;
    /** Decoded, by the names in `path`. */
    readonly captures: Readonly<Record<Captures, string>>;
    /** Valid by the schema, with its defaults. An empty object without a schema. */
    readonly input: I;
    /**
     * Aborted when the time is over (COMITY_ACTION_TIMEOUT_MS), or the client resets its connection or stream; a client of HTTP/1.1 that only
     * closes its side may still read. Pass it on to long operations.
     */
    readonly signal: AbortSignal;
  };

type JudgesDocument = 'owner' | 'tenant' | { readonly where: unknown };

/** Only an action on members has a document for the rule to judge. */
type Judging<On extends ActionPlace, A> = [On] extends ['member']
  ? unknown
  : A extends JudgesDocument
    ? Exclude<Rule, JudgesDocument>
    : unknown;

export type ActionParts<
  On extends ActionPlace,
  P extends string,
  I extends TObject,
  O extends TSchema | Output,
  Code extends string,
  T,
  R,
  A = Rule<T> | (string & {}),
> = {
  /** Required for an action of a collection. It is on each member, `{collection}/{id}/{name}`, or the collection, `{collection}/{name}`. */
  readonly on?: On;
  readonly method: ActionMethod;
  /** Default the name. `/merge/{into}` has a capture. Of free actions from the base, of others from the member or the collection. */
  readonly path?: P;
  /** A TypeBox object: the content as JSON, form or multipart; the query string of GET and DELETE. */
  readonly input?: I;
  /** A TypeBox schema of JSON, or `output.text()`, `.bytes()`, `.stream()`, `.redirect()`. Absent: 204. */
  readonly output?: O;
  /** Who may call it. Default: the rule `update` of the collection for members, otherwise `principal`. Any other text is a role. */
  readonly access?: A & Judging<On, A>;
  /** The codes that its handler refuses with: a list, or an object with their statuses. Absent: any. */
  readonly codes?: readonly Code[] | { readonly [Each in Code]: number };
  readonly summary?: string;
  readonly description?: string;
  /** For the OpenAPI document. */
  readonly example?: { readonly input?: Static<I>; readonly output?: Returned<O> };
  /** Runs in one transaction, which is committed before the response, and again if that was overtaken. GET and QUERY only read. */
  readonly handler: (
    acting: Acting<
      [TObject] extends [I] ? Record<string, never> : Static<I>,
      T,
      R,
      Code,
      On,
      [string] extends [P] ? string : CaptureNames<P>
    >,
  ) => Returned<O> | Promise<Returned<O>>;
};

/**
 * Declares an action. A handler that names the type of its parameter knows the document and the collections:
 * `handler({ document }: Acting<Static<typeof Input>, Ticket, Desk>)`.
 */
export function action<
  const On extends ActionPlace = undefined,
  const P extends string = string,
  I extends TObject = TObject,
  O extends TSchema | Output = Output,
  const Code extends string = string,
  T = Record<string, unknown>,
  R = Resources,
  const A extends Rule<T> | (string & {}) = string,
>(declaration: ActionParts<On, P, I, O, Code, T, R, A>): ActionDeclaration<NoInfer<On>, T> {
  // Its parts are of types that nothing else can name; config/actions.ts inspects them.
  return declaration as unknown as ActionDeclaration<On, T>;
}
