/** Types of what the API serves, from its OpenAPI document. Rendered by scripts/docs/api-types.ts; `npm run docs` writes it. */

export type AccessDecision = {
  readonly answer: "always" | "never" | "depends" | "yes" | "no";
  readonly reason: "rule" | "unrestricted" | "administrator" | "scope" | "unreadable" | "document" | "server" | "fixed" | "failed";
  readonly by: string | null;
  readonly failure: string | null;
  readonly text: string | null;
  readonly words: string | null;
  readonly rules: readonly (AccessRule)[];
};

export type AccessOfMember = {
  readonly name: string;
  readonly read: AccessDecision;
  readonly write: AccessDecision;
};

export type AccessOfOperation = {
  readonly name: string;
  readonly requests: readonly (string)[];
  readonly answer: "always" | "never" | "depends" | "yes" | "no";
  readonly reason: "rule" | "unrestricted" | "administrator" | "scope" | "unreadable" | "document" | "server" | "fixed" | "failed";
  readonly by: string | null;
  readonly failure: string | null;
  readonly text: string | null;
  readonly words: string | null;
  readonly rules: readonly (AccessRule)[];
};

export type AccessReport = {
  readonly collection: string | null;
  readonly id: string | null;
  readonly caller: {
    readonly id: string | null;
    readonly roles: readonly (string)[];
    readonly scopes: readonly (string)[];
    readonly tenant: string | null;
  };
  readonly operations: readonly (AccessOfOperation)[];
  readonly members: readonly (AccessOfMember)[];
  readonly roles: readonly (string)[];
};

export type AccessRule = {
  readonly number: string;
  readonly text: string;
  readonly words: string;
  readonly isReturned: boolean;
  readonly source: string | null;
  readonly answer: "always" | "never" | "depends" | "yes" | "no" | null;
  readonly parts: readonly (AccessRule)[];
};

export type Activity = {
  readonly hour: {
    readonly from: string;
    readonly stepSeconds: number;
    readonly requests: readonly (number)[];
    readonly clientErrors: readonly (number)[];
    readonly serverErrors: readonly (number)[];
    readonly writes: readonly (number)[];
    readonly delivered: readonly (number)[];
    readonly undelivered: readonly (number)[];
  };
  readonly day: {
    readonly from: string;
    readonly stepSeconds: number;
    readonly requests: readonly (number)[];
    readonly clientErrors: readonly (number)[];
    readonly serverErrors: readonly (number)[];
    readonly writes: readonly (number)[];
    readonly delivered: readonly (number)[];
    readonly undelivered: readonly (number)[];
  };
};

export type Attempt = {
  readonly number: number;
  readonly statusCode: number | null;
  readonly error: string | null;
  readonly message?: string | null;
  readonly latencyMs: number;
  readonly responseSnippet: string;
  readonly trigger: "automatic" | "manual";
  readonly at: string;
  readonly timing?: {
    readonly dnsMs?: number | null;
    readonly connectMs?: number | null;
    readonly tlsMs?: number | null;
    readonly firstByteMs?: number | null;
    readonly totalMs?: number;
  };
  readonly responseHeaders?: readonly (readonly (string)[])[];
  readonly protocol?: string | null;
  readonly reused?: boolean | null;
  readonly cut?: "long" | "slow" | "broken" | null;
};

export type Backup = {
  readonly id: string;
  readonly file: string;
  readonly bytes: number;
  readonly files: number;
  readonly fileBytes: number;
  readonly createdAt: string;
};

export type Delivery = {
  readonly id: string;
  readonly eventId: string;
  readonly eventType: string;
  readonly endpointId: string;
  readonly status: "pending" | "delivered" | "not_delivered";
  readonly attemptCount: number;
  readonly scheduledAttemptCount: number;
  readonly nextAttemptAt: string | null;
  readonly dueAt: string | null;
  readonly lastStatusCode: number | null;
  readonly lastError: string | null;
  readonly lastLatencyMs?: number;
  readonly orderKey?: string;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly etag?: string;
};

export type Endpoint = {
  readonly id: string;
  readonly url: string;
  readonly description?: string;
  readonly events: readonly (string)[];
  readonly scheme?: "standard" | "timestamped" | "plain";
  readonly mode?: "live" | "sandbox";
  readonly signatures?: readonly ("v1" | "v1a")[];
  readonly status?: "enabled" | "disabled";
  readonly disabledReason?: "gone" | "failing";
  readonly tenant?: string;
  readonly headers?: { readonly [name: string]: unknown };
  readonly maxInFlight?: number;
  readonly ratePerSecond?: number;
  readonly where?: { readonly [name: string]: unknown };
  readonly orderBy?: string;
  readonly omit?: readonly (string)[];
  readonly template?: string;
  readonly madeBy?: string;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly etag?: string;
};

export type EndpointHealth = {
  readonly status: "healthy" | "failing" | "disabled";
  readonly failingSince: string | null;
  readonly failures: number;
  readonly warnedAt: string | null;
  readonly disablesAt: string | null;
  readonly secrets: readonly ({
    readonly until: string | null;
  })[];
};

export type Event = {
  readonly id: string;
  readonly object: "event";
  readonly type: string;
  readonly created: number;
  readonly actor?: {
    readonly kind: "user" | "key" | "administrator-key" | "issuer" | "portal" | "anonymous" | "handler" | "subscriber" | "job" | "system";
    readonly id: string | null;
    readonly keyId?: string;
  };
  readonly requestId?: string;
  readonly traceparent?: string;
  readonly tenant?: string;
  readonly data: {
    readonly object: { readonly [name: string]: unknown };
  };
};

export type EventType = {
  readonly type: string;
  readonly description: string;
  readonly schema: { readonly [name: string]: unknown } | null;
  readonly sample: Event | null;
};

export type Hold = {
  readonly held: boolean;
  readonly since: string | null;
  readonly from: string | null;
};

export type ImportCounts = {
  readonly created: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly refused: number;
  readonly errors: readonly ({
    readonly line: number;
    readonly column?: number;
    readonly member?: string;
    readonly code: string;
    readonly message: string;
  })[];
  readonly errorsMore?: number;
};

export type Me = {
  readonly id: string;
  readonly kind: "user" | "key" | "administrator" | "external";
  readonly email?: string;
  readonly name?: string;
  readonly roles: readonly (string)[];
  readonly scopes: readonly (string)[];
  readonly tenant: string | null;
  readonly grants?: readonly (string)[];
  readonly authenticatedBy: "key" | "token" | "issuer" | "password" | "session-cookie";
};

export type Passkeys = {
  readonly items: readonly ({
    readonly id: string;
    readonly name: string;
    readonly transports: readonly (string)[];
    readonly backedUp: boolean;
    readonly createdAt: string;
    readonly lastUsedAt: string | null;
  })[];
};

export type Program = {
  readonly version: string;
  readonly node: string;
  readonly startedAt: string;
  readonly process: string;
  readonly store: {
    readonly engine: "sqlite" | "postgresql";
    readonly bytes: number | null;
  };
  readonly tls: {
    readonly notAfter: string;
  } | null;
  readonly differences: readonly ({
    readonly what: string;
    readonly noticedAt: string;
  })[];
};

export type ReceivedMessage = {
  readonly id: string;
  readonly sender: string;
  readonly dedupeKey: string;
  readonly type: string | null;
  readonly receivedAt: string;
  readonly status: "pending" | "processed" | "failed";
  readonly attempts: number;
  readonly scheduledAttempts: number;
  readonly dueAt: string | null;
  readonly lastError: string | null;
  readonly contentType: string | null;
  readonly contentLength: number;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly etag?: string;
};

export type Recovery = {
  readonly id: string;
  readonly endpointId: string;
  readonly since: string;
  readonly until: string;
  readonly dryRun: boolean;
  readonly status: "running" | "finished" | "stopped";
  readonly examined: number;
  readonly matching: number;
  readonly resent: number;
  readonly created: number;
  readonly finishedAt: string | null;
  readonly logAfter?: string;
  readonly logLast?: string;
  readonly runningFor?: string;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly etag?: string;
};

export type SecondFactor = {
  readonly required: boolean;
  readonly enrolled: boolean;
  readonly totp: {
    readonly addedAt?: string;
  } | null;
  readonly passkeys: number;
  readonly recoveryCodesLeft: number;
};

export type Sender = {
  readonly name: string;
  readonly description: string;
  readonly preset: string | null;
  readonly path: string;
  readonly signature: {
    readonly kind: "hmac" | "ed25519" | "ecdsa" | "rsa" | "jwt" | "token" | "function";
    readonly header?: string;
    readonly hash?: "sha1" | "sha256" | "sha512";
    readonly algorithm?: "HS256" | "RS256" | "ES256" | "EdDSA";
    readonly encoding?: "hex" | "base64" | "base64url";
    readonly toleranceSeconds?: number;
  };
  readonly handOn: {
    readonly kind: "handler" | "inbox";
  } | {
    readonly kind: "forward";
    readonly url: string;
    readonly scheme: "standard" | "timestamped" | "plain";
    readonly secretSource: "environment" | "store";
    readonly secretVariable: string;
    readonly secretCount: number;
    readonly oldSecretsUntil: string | null;
  };
  readonly schedule: readonly (number)[];
  readonly inFlightMax: number | null;
  readonly secretSource: "environment" | "store";
  readonly secretVariable: string;
  readonly secretCount: number;
  readonly oldSecretsUntil: string | null;
};

export type SentRequest = {
  readonly method: "POST";
  readonly url: string;
  readonly headers: readonly (readonly (string)[])[];
  readonly content: string;
};

export type Session = {
  readonly id: string;
  readonly createdAt: string;
  readonly seenAt: string;
  readonly endsAt: string;
  readonly cookie: boolean;
  readonly current: boolean;
};

export type Setting = {
  readonly name: string;
  readonly variable: string;
  readonly section: string;
  readonly meaning: string;
  readonly unit: string | null;
  readonly value: string | number | boolean | null;
  readonly default: string | number | boolean | null;
  readonly source: "default" | "configuration" | "environment" | "command line";
  readonly secret: boolean;
};

export type StoreReport = {
  readonly engine: "sqlite" | "postgresql";
  readonly readAt: string;
  readonly bytes: number;
  readonly disk: {
    readonly bytes: number;
    readonly freeBytes: number;
  } | null;
  readonly schemaVersion: number;
  readonly collections: readonly ({
    readonly name: string;
    readonly documents: number;
    readonly isEstimate: boolean;
    readonly bytes: number | null;
    readonly indexes: readonly ({
      readonly kind: "index" | "unique" | "search";
      readonly fields: readonly (string)[];
      readonly stands: boolean;
    })[];
  })[];
  readonly migrations: readonly ({
    readonly id: string;
    readonly collection: string;
    readonly state: "made" | "running" | "pending";
    readonly at: string | null;
    readonly documents: number | null;
    readonly changed: number | null;
    readonly program: string | null;
  })[];
};

export type TotpEnrolment = {
  readonly enrolment: string;
  readonly expiresIn: number;
  readonly secret: string;
  readonly uri: string;
};

export type Version = {
  readonly id: string;
  readonly change: "created" | "updated" | "deleted";
  readonly at: string;
  readonly actor?: {
    readonly kind: "user" | "key" | "administrator-key" | "issuer" | "portal" | "anonymous" | "handler" | "subscriber" | "job" | "system";
    readonly id: string | null;
    readonly keyId?: string;
  };
  readonly requestId?: string;
  readonly changes: { readonly [name: string]: {
    readonly before?: unknown;
    readonly after?: unknown;
  } };
};

export type View = {
  readonly id: string;
  readonly collection: string;
  readonly name: string;
  readonly shared: boolean;
  readonly query: string;
  readonly columns: readonly (string)[];
  readonly ownerId?: string;
  readonly tenant?: string;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly etag?: string;
};
