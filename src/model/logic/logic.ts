/**
 * The arguments and declarations of an application's own functions. The functions are part of the configuration: hooks run within a write,
 * actions within a request, subscribers, jobs and handlers of received messages on threads of their own.
 */
import type { RulePrincipal } from '../access-function.ts';
import type { WithOpenFiles } from '../file.ts';
import type { Document, Resources } from './collection-calls.ts';

/** The caller of a hook or an action. In subscribers, jobs and handlers it is the program itself, an administrator. */
export type Caller = RulePrincipal;

/** Statuses that speak of an application's rules, not of the protocol or the program. */
export type RefusalStatus = 400 | 402 | 403 | 404 | 409 | 410 | 422 | 423 | 424 | 429 | 451;

/** A refusal in the application's own words. */
export type Refusal<Code extends string = string> = {
  /** Default 422, or the status of a code of the error registry. */
  readonly status?: RefusalStatus;
  /** Lower-case letters, digits and underscores: `ticket_closed`. */
  readonly code: Code;
  /** For people. */
  readonly message?: string;
  /** The member at fault, as a JSON Pointer (RFC 6901): `/status`. */
  readonly pointer?: string;
};

/** Ends the function, and with it the whole unit, by a problem response. It throws; `return refuse(...)` shows that to the compiler. */
export type Refuse<Code extends string = string> = (refusal: Refusal<Code>) => never;

/** Emits an event like a POST to the event log (§2.6), with the unit. @param object the content of `data.object` */
export type Emit = (
  type: string,
  object: Readonly<Record<string, unknown>>,
  options?: { readonly tenant?: string },
) => Promise<void>;

/** A text, HTML, or both. */
type MailContent = { readonly subject: string } & (
  | { readonly text: string; readonly html?: string }
  | { readonly html: string; readonly text?: string }
);

/** An address such as `ada@example.com`, alone or with a name. */
export type MailAddress = string | { readonly name: string; readonly address: string };

export type MailAttachment = {
  /** Name of the file, such as `invoice.pdf`. */
  readonly name: string;
  /** Media type; by default that of the name's extension. */
  readonly type?: string;
  /** A text is sent as UTF-8. */
  readonly content: string | Uint8Array;
};

export type OutgoingMail = {
  readonly to: MailAddress | readonly MailAddress[];
  readonly cc?: MailAddress | readonly MailAddress[];
  /** Recipients that no recipient sees. */
  readonly bcc?: MailAddress | readonly MailAddress[];
  readonly replyTo?: MailAddress;
  readonly attachments?: readonly MailAttachment[];
  /** Further header fields. */
  readonly headers?: Readonly<Record<string, string>>;
} & (
  | MailContent
  /** The files `NAME.txt` and `NAME.html` of the folder of templates, with named values. */
  | { readonly template: string; readonly values?: Readonly<Record<string, string | number>> }
);

export type Mail = {
  /** Keeps the mail with the unit. It is sent after the commit, and again until the server of mail takes it. */
  send(mail: OutgoingMail): Promise<void>;
};

/** What every function of an application gets. All of its writes, events and mails are one unit: all are committed, or none. */
export type Logic<R = Resources> = {
  readonly resources: R;
  readonly mail: Mail;
  readonly emit: Emit;
  /** The time of the program. */
  readonly now: Date;
};

/** What functions get that may refuse. */
export type Refusing<Code extends string = string> = {
  readonly refuse: Refuse<Code>;
  readonly principal: Caller;
};

// Hooks of a collection (`collection({ hooks })`): functions within its writes and reads.

/** @template T the fields of the document @template R the calls on all collections @template M further members of the document */
export type Write<T, R = Resources, M = unknown> = Logic<R> &
  Refusing & {
    readonly action: 'create' | 'update' | 'delete';
    /** The id of the document, also of one that is being created. */
    readonly id: string;
    /** Undefined: the write creates the document. */
    readonly before: Document<WithOpenFiles<T>, M> | undefined;
    /** The fields to be stored, which the hook may change; they are validated again. Of a deletion: those that are removed. */
    readonly after: WithOpenFiles<T>;
  };

/** Runs in the unit of the write, before it commits, and again if the unit was overtaken. What it throws is a 500, and nothing is written. */
export type BeforeWrite<T, R = Resources, M = unknown> = (write: Write<T, R, M>) => void | Promise<void>;

/**
 * Runs for each document of each response, event and message: it must be pure and synchronous. It returns the document to serve: members
 * may be removed or changed, except for those that the server sets.
 */
export type AfterRead<T, M = unknown> = (read: {
  readonly document: Document<T, M>;
  readonly principal: Caller;
}) => Readonly<Record<string, unknown>>;

export type Hooks<T, R = Resources, M = unknown> = {
  readonly beforeWrite?: BeforeWrite<T, R, M>;
  readonly afterRead?: AfterRead<T, M>;
};
