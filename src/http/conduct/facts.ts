/**
 * What the decision graph looks at. The first group is known from the message alone; each later
 * group is undefined until the walk reaches a node that needs it and returns the matching want, so that a
 * request refused early never costs a body or a store read (design §2).
 */
import type { ProblemCode } from '../problem-registry.ts';

export type Facts = {
  readonly method: string;
  /** The server knows the method at all (RFC 9110 §9.1). */
  readonly methodKnown: boolean;
  readonly targetFits: boolean;
  readonly targetValid: boolean;
  readonly hostValid: boolean;
  /** No singleton field came twice. */
  readonly fieldsSound: boolean;
  readonly transferCodingUnderstood: boolean;
  readonly expectationMet: boolean;
  /** The target is `*`. */
  readonly serverWide: boolean;
  readonly traceEnabled: boolean;
  /** The message announces content. */
  readonly hasContent: boolean;
  /** A resource stands behind the path, whether or not a representation exists. */
  readonly routed: boolean;
  readonly methodAllowed: boolean;
  /** OPTIONS with Origin and Access-Control-Request-Method (§4.8). */
  readonly preflight: boolean;
  /** Some representation fits Accept. */
  readonly acceptable: boolean;
  /** GET whose Accept asks for the event stream of a resource that has one. */
  readonly streamAsked: boolean;
  /** The resource is spoken to over an upgraded connection and has no representation (§4.13). */
  readonly conversing: boolean;
  /** The message asks for that: `absent` where no field of a handshake came. */
  readonly handshake: 'absent' | 'sound' | 'malformed';
  /** The resource gives a meaning to content with this method. */
  readonly contentDefined: boolean;
  /** Content is taken as it came, whatever its type and coding, or none (§4.14.1). */
  readonly contentRaw: boolean;
  readonly contentTypeGiven: boolean;
  readonly contentTypeSupported: boolean;
  readonly contentCodingSupported: boolean;
  /** Content-Length, where given, is within the limit. */
  readonly contentFits: boolean;
  readonly matchRequired: boolean;
  readonly asyncAsked: boolean;
  readonly minimalAsked: boolean;
  readonly representationAsked: boolean;
  /** A form sent by a browser that wants a page (§4.12). */
  readonly browserForm: boolean;
  /** POST and PATCH with Idempotency-Key. */
  readonly idempotencyKey: 'absent' | 'given' | 'malformed';

  /** Want `principal`. */
  credential: 'absent' | 'accepted' | 'refused' | undefined;
  /** Which refusal, where `credential` is `refused`. */
  credentialProblem: ProblemCode | undefined;
  /** Whether the principal may do this, before any resource is looked at. */
  permission: 'granted' | 'denied' | 'depends' | undefined;
  /** Whether that principal, or the address of a caller without one, has used up the requests that it may make. */
  rateExceeded: boolean | undefined;

  /** Want `content`: null when it was read and parsed. */
  contentProblem: ProblemCode | null | undefined;

  /** Want `idempotency`; `replay` brings the stored `result` with it. */
  idempotency: 'first' | 'replay' | 'running' | 'other' | undefined;

  /** Want `state`. */
  exists: boolean | undefined;
  /** The principal may know that it exists. */
  visible: boolean | undefined;
  permitted: boolean | undefined;
  /** The answer to a read of this state lies at another URI (§4.12). */
  elsewhere: boolean | undefined;
  /** PUT is defined to create here. */
  readonly createsHere: boolean;

  /** Want `proposal`: null when the change or query that the content describes is sound. */
  proposalProblem: ProblemCode | null | undefined;

  /** Want `preconditions`, each evaluated against what stands; `absent` where the field did not come. */
  ifMatch: Condition | undefined;
  ifUnmodifiedSince: Condition | undefined;
  ifNoneMatch: Condition | undefined;
  ifModifiedSince: Condition | undefined;

  /** Want `result`: what became of the change. */
  result: 'made' | 'superseded' | 'refused' | undefined;
  resultProblem: ProblemCode | undefined;
  /** The change made a resource that did not exist. */
  created: boolean | undefined;
  /** What was asked for is kept, and done after the answer. */
  queued: boolean | undefined;
  /** There is something to tell of the change. */
  told: boolean | undefined;
};

export type Condition = 'absent' | 'true' | 'false';

/** What the walk can stop for. */
export type Want =
  | 'principal'
  | 'content'
  | 'idempotency'
  | 'state'
  | 'proposal'
  | 'preconditions'
  | 'result';
