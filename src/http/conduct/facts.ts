/**
 * The facts of the decision graph. The first group comes from the message alone; each later one is undefined until the walk reaches a node
 * that needs it and returns the matching want, so that an early refusal costs neither a body nor a store read.
 */
import type { ProblemCode } from '../problem-registry.ts';

export type Facts = {
  readonly method: string;
  readonly methodKnown: boolean;
  readonly targetFits: boolean;
  readonly targetValid: boolean;
  readonly hostValid: boolean;
  /** No singleton field is repeated. */
  readonly fieldsSound: boolean;
  readonly transferCodingUnderstood: boolean;
  readonly expectationMet: boolean;
  readonly serverWide: boolean;
  readonly traceEnabled: boolean;
  readonly hasContent: boolean;
  /** A resource exists for the path, with or without a representation. */
  readonly routed: boolean;
  readonly methodAllowed: boolean;
  /** OPTIONS with Origin and Access-Control-Request-Method (§4.8). */
  readonly preflight: boolean;
  readonly acceptable: boolean;
  /** GET whose Accept requests the event stream of a resource that has one. */
  readonly streamAsked: boolean;
  /** GET with Range of a resource whose representation may be served in ranges. */
  readonly rangeAsked: boolean;
  /** HEAD of a resource whose state is in fields. */
  readonly fieldsAsked: boolean;
  /** The resource is available only over an upgraded connection and has no representation (§4.13). */
  readonly conversing: boolean;
  /** The opening handshake: `absent` without any of its fields. */
  readonly handshake: 'absent' | 'sound' | 'malformed';
  readonly contentDefined: boolean;
  /** The resource accepts content as received, of any type and coding, or none (§4.14.1). */
  readonly contentRaw: boolean;
  readonly contentTypeGiven: boolean;
  readonly contentTypeSupported: boolean;
  readonly contentCodingSupported: boolean;
  readonly contentFits: boolean;
  readonly matchRequired: boolean;
  /** The response reports what was done: the request does not act on the representation of the target. */
  readonly reports: boolean;
  /** How the operation leads to another URI; undefined: it does not, or with 303 where its state says so. */
  readonly redirect: 'see_other' | 'temporary' | 'permanent' | undefined;
  asyncAsked: boolean;
  readonly minimalAsked: boolean;
  readonly representationAsked: boolean;
  /** The content is a form from a browser that wants a page (§4.12). */
  readonly browserForm: boolean;
  readonly idempotencyKey: 'absent' | 'given' | 'malformed';

  /** Want `principal`. */
  credential: 'absent' | 'accepted' | 'refused' | undefined;
  credentialProblem: ProblemCode | undefined;
  /** True if the principal may do this, before any resource is read. */
  permission: 'granted' | 'denied' | 'depends' | undefined;
  /** Null unless the principal, or the address of a caller without one, has reached its rate limit. */
  rateProblem: ProblemCode | null | undefined;

  /** Want `content`: null if it was read and parsed. */
  contentProblem: ProblemCode | null | undefined;

  /** Want `idempotency`; `replay` brings the stored `result` with it. */
  idempotency: 'first' | 'replay' | 'running' | 'other' | undefined;

  /** Want `state`. */
  exists: boolean | undefined;
  visible: boolean | undefined;
  permitted: boolean | undefined;
  /** This state is read at another URI (§4.12). */
  elsewhere: boolean | undefined;
  readonly createsHere: boolean;

  /** Want `proposal`: null if the change or query in the content is valid. */
  proposalProblem: ProblemCode | null | undefined;

  /** Want `preconditions`, each evaluated against the current state; `absent` without the field. */
  ifMatch: Condition | undefined;
  ifUnmodifiedSince: Condition | undefined;
  ifNoneMatch: Condition | undefined;
  ifModifiedSince: Condition | undefined;

  /** Want `ranges`: what Range selects of the representation; `whole` if the field does not apply. */
  ranges: 'whole' | 'partial' | 'unsatisfiable' | undefined;

  /** Want `result`: the outcome of the change. */
  result: 'made' | 'superseded' | 'refused' | undefined;
  resultProblem: ProblemCode | undefined;
  created: boolean | undefined;
  /** The request is queued and carried out after the response. */
  queued: boolean | undefined;
  /** The response has content about the change. */
  told: boolean | undefined;
};

export type Condition = 'absent' | 'true' | 'false';

export type Want =
  | 'principal'
  | 'content'
  | 'idempotency'
  | 'state'
  | 'proposal'
  | 'preconditions'
  | 'ranges'
  | 'result';
